package group

import (
	"fmt"
	"strings"
	"testing"
)

// TestK48_AnExpressionHasABound: what an expression may cost is known before it is compiled; what people write is far below the bound.
func TestK48_AnExpressionHasABound(t *testing.T) {
	list := "orders"
	for i := range 300 {
		list += fmt.Sprintf("|payment-%d", i)
	}
	for pattern, wrong := range map[string]string{
		"orders-.*":                           "",
		"(eu|us)[.]orders[.][0-9]{1,3}":       "",
		list:                                  "",
		strings.Repeat("a", patternBytesMax):  "",
		"(.?){900}b":                          "",
		strings.Repeat("(.?){900}", 3):        "states, and may have 5000",
		"((a{0,30}b){30})(c{900})(d{400}){2}": "states, and may have 5000",
		strings.Repeat("(.?){1000}", 400):     "states, and may have 5000",
		strings.Repeat("(", 2000) + strings.Repeat(")", 2000): "nest",
		"(a{1000}){1000}":           "invalid repeat count",
		strings.Repeat("a", 4097):   "it has 4097 bytes, and may have 4096",
		strings.Repeat(`\pL`, 1361): "states, and may have 5000",
		`\pL+-[\d\w.]*`:             "",
		")(":                        "unexpected )",
	} {
		_, err := CompilePattern(pattern)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%.40q: %v, want %q", pattern, err, wrong)
		}
	}
}

// TestK48_StatesAreNotMoreThanCounted: the states that are counted bound the work on one byte of a name.
func TestK48_StatesAreNotMoreThanCounted(t *testing.T) {
	for pattern, want := range map[string]int{ // a repetition, a group and a choice count as one beside what they hold
		"": 1, "abc": 3, "a|b": 1, "ab|cd": 5, "a{3}": 6, "(a{3}){4}": 32, "(ab){2,}": 12, "(.?){900}": 3600, "[a-z]*": 2} {
		p, err := CompilePattern(pattern)
		if err != nil || p.States != want {
			t.Errorf("%q: %+v %v, want %d", pattern, p, err, want)
		}
	}
}
