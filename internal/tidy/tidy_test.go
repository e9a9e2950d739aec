package tidy

import (
	"strings"
	"testing"
)

func TestSourceIsTidy(t *testing.T) {
	repository, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(repository.files) < 20 || !repository.paths["go.mod"] {
		t.Fatalf("found %d Go files: this is not the repository", len(repository.files))
	}
	for _, complaint := range judge(repository.findings(), exceptions) {
		t.Error(complaint)
	}
	if len(exceptions) > exceptionsMax {
		t.Errorf("%d exceptions, and there may be %d: the list only shrinks", len(exceptions), exceptionsMax)
	}
}

// judge sets findings against exceptions, and says what is wrong with either.
func judge(found []finding, excused []exception) []string {
	var complaints []string
	used := make([]bool, len(excused))
	for _, f := range found {
		isExcused := false
		for i, e := range excused {
			if e.check == f.check && e.where == f.where && f.value <= e.size {
				used[i], isExcused = true, true
			}
		}
		if !isExcused {
			complaints = append(complaints, f.String())
		}
	}
	for i, e := range excused {
		if !used[i] {
			complaints = append(complaints, "exception without a finding: "+e.check+" "+e.where)
		}
		if e.reason == "" {
			complaints = append(complaints, "exception without a reason: "+e.check+" "+e.where)
		}
	}
	return complaints
}

func TestExceptionsOnlyShrink(t *testing.T) {
	long := finding{check: "function-lines", where: "a.go F", value: 80, text: "long"}
	excuse := exception{check: "function-lines", where: "a.go F", size: 80, reason: "because"}
	tests := []struct {
		name    string
		found   []finding
		excused []exception
		want    string // part of the only complaint; "" for none
	}{
		{"excused", []finding{long}, []exception{excuse}, ""},
		{"not excused", []finding{long}, nil, "function-lines: a.go F"},
		{"stale", nil, []exception{excuse}, "exception without a finding"},
		{"no reason", []finding{long}, []exception{{check: long.check, where: long.where, size: 80}}, "without a reason"},
		{"other check", []finding{{check: "file-lines", where: "a.go F", value: 1}}, nil, "file-lines"},
	}
	grown := long
	grown.value++
	if got := judge([]finding{grown}, []exception{excuse}); len(got) != 2 {
		t.Errorf("a size that has grown: complaints %q, want the finding and the useless exception", got)
	}
	for _, test := range tests {
		got := judge(test.found, test.excused)
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
			t.Errorf("%s: complaints %q, want %q", test.name, got, test.want)
		}
	}
}
