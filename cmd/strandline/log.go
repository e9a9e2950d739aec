package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/sealed"
)

func newLogCommand(a *app) *cobra.Command {
	return newGroupCommand("log", "Read log segments offline",
		`Read the files of a log without a broker. DIR is the directory of one log (DATA/topics/TOPICID-PARTITION or DATA/metadata) or a data
directory, whose logs are then read one after the other. Nothing is changed. While a broker runs, the end of a log may be cut short.`,
		newLogDumpCommand(a), newLogVerifyCommand(a))
}

func newLogDumpCommand(a *app) *cobra.Command {
	var keyring string
	c := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print the header of every batch in a log",
		Example: `  strandline log dump ./data/topics/0123456789abcdef0123456789abcdef-0
  strandline log dump ./data -o json | jq 'select(.checksum != "ok")'`,
		Args: exactArgs("DIR"),
		RunE: func(_ *cobra.Command, args []string) error { return a.logDump(args[0], keyring) },
	}
	keyringFlag(c, &keyring)
	return c
}

// keyringFlag lets a command read encrypted files.
func keyringFlag(c *cobra.Command, keyring *string) {
	c.Flags().StringVar(keyring, "keyring", "", "keyring file, if the node encrypts its files")
}

func newLogVerifyCommand(a *app) *cobra.Command {
	var keyring string
	c := &cobra.Command{
		Use:     "verify DIR",
		Short:   "Check every batch in a log; exit code 1 if anything is damaged",
		Example: `  strandline log verify ./data`,
		Args:    exactArgs("DIR"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.logVerify(args[0], keyring) },
	}
	keyringFlag(c, &keyring)
	return c
}

// logDirs lists the logs in dir: dir itself if it holds segments, otherwise those of a data directory, in name order.
func logDirs(dir string) ([]string, error) {
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, &failure{what: "cannot read " + dir, why: errors.Unwrap(err)}
	case !st.IsDir():
		return nil, &failure{what: dir + " is a file", todo: "give the directory that holds it"}
	case holdsSegments(dir):
		return []string{dir}, nil
	}
	dirs, err := filepath.Glob(filepath.Join(dir, "topics", "*"))
	if err != nil {
		return nil, err
	}
	dirs = append(dirs, filepath.Join(dir, "metadata"))
	var logs []string
	for _, d := range dirs {
		if holdsSegments(d) {
			logs = append(logs, d)
		}
	}
	if len(logs) == 0 {
		return nil, &failure{what: "there is no log in " + dir, todo: "give a data directory, or the directory of one log"}
	}
	return logs, nil
}

// sealedLogs is logDirs, with the file system that reads them.
func sealedLogs(dir, keyring string) ([]string, sys.FS, error) {
	fsys, err := sealed.Open(sys.Real().FS, keyring)
	if err != nil {
		return nil, nil, failf(err, "nothing was read")
	}
	dirs, err := logDirs(dir)
	return dirs, fsys, err
}

// holdsSegments says whether dir holds at least one segment file.
func holdsSegments(dir string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	return err == nil && len(names) > 0
}

// dumpedBatch is one line of `log dump -o json`.
type dumpedBatch struct {
	File           string `json:"file"`
	Position       int64  `json:"position"` // bytes from the start of the file
	BaseOffset     int64  `json:"baseOffset"`
	EndOffset      int64  `json:"endOffset"` // exclusive
	Count          int32  `json:"count"`
	Bytes          int64  `json:"bytes"`
	LeaderEpoch    int32  `json:"leaderEpoch"`
	Compression    string `json:"compression"`
	TimestampType  string `json:"timestampType"`
	Transactional  bool   `json:"transactional,omitempty"`
	Control        bool   `json:"control,omitempty"`
	FirstTimestamp int64  `json:"firstTimestamp"` // milliseconds since 1970
	MaxTimestamp   int64  `json:"maxTimestamp"`
	ProducerID     int64  `json:"producerId"` // -1: none
	ProducerEpoch  int16  `json:"producerEpoch"`
	BaseSequence   int32  `json:"baseSequence"`
	CRC            uint32 `json:"crc"`
	Checksum       string `json:"checksum"` // "ok", or what is wrong
}

func newDumpedBatch(b storage.DumpedBatch) dumpedBatch {
	h := b.Header
	d := dumpedBatch{
		File: b.File, Position: b.Pos, BaseOffset: int64(h.Base), EndOffset: int64(h.End), Count: h.Count, Bytes: h.Bytes,
		LeaderEpoch: int32(h.Epoch), Compression: codecName(h.Attributes), TimestampType: "create",
		Transactional: h.Attributes&0x10 != 0, Control: h.Attributes&0x20 != 0,
		FirstTimestamp: h.BaseTimestamp, MaxTimestamp: h.MaxTimestamp,
		ProducerID: int64(h.ProducerID), ProducerEpoch: int16(h.ProducerEpoch), BaseSequence: h.BaseSequence, CRC: h.CRC, Checksum: "ok",
	}
	if h.Attributes&0x08 != 0 {
		d.TimestampType = "append"
	}
	if b.Checksum != nil {
		d.Checksum = oneLine(b.Checksum.Error())
	}
	return d
}

// codecName names the compression in a batch's attributes.
func codecName(attributes int16) string {
	names := [...]string{"none", "gzip", "snappy", "lz4", "zstd"}
	if c := int(attributes & 7); c < len(names) {
		return names[c]
	}
	return fmt.Sprintf("unknown (%d)", attributes&7)
}

func (a *app) logDump(dir, keyring string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	dirs, fsys, err := sealedLogs(dir, keyring)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.stdout)
	defer out.Flush()
	p := printer{w: out, json: s.json, noHeader: s.noHeader}
	if !p.json && !p.noHeader {
		fmt.Fprintf(out, dumpColumns, "BASE", "END", "COUNT", "BYTES", "EPOCH", "CODEC", "MAX-TIMESTAMP", "PRODUCER", "SEQUENCE", "CHECKSUM")
	}
	damaged := 0
	for _, d := range dirs {
		if !p.json && len(dirs) > 1 {
			fmt.Fprintln(out, d)
		}
		err := storage.DumpLog(fsys, d, func(b storage.DumpedBatch) error {
			if b.Checksum != nil {
				damaged++
			}
			return p.printBatch(newDumpedBatch(b))
		})
		if err != nil {
			return &failure{what: "cannot read all of " + d, why: err}
		}
	}
	if damaged > 0 {
		return &failure{what: fmt.Sprintf("%d damaged batches", damaged), todo: "see `strandline log verify`"}
	}
	return nil
}

// dumpColumns are the columns of `log dump`: fixed widths, because a log is too long to measure first.
const dumpColumns = "%-10s %-10s %-6s %-8s %-5s %-7s %-24s %-14s %-8s %s\n"

func (p printer) printBatch(d dumpedBatch) error {
	if p.json {
		return p.object(d)
	}
	producer := "-"
	if d.ProducerID >= 0 {
		producer = fmt.Sprintf("%d/%d", d.ProducerID, d.ProducerEpoch)
	}
	newest := "-" // a batch that carries no time
	if d.MaxTimestamp >= 0 {
		newest = time.UnixMilli(d.MaxTimestamp).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	_, err := fmt.Fprintf(p.w, dumpColumns, fmt.Sprint(d.BaseOffset), fmt.Sprint(d.EndOffset), fmt.Sprint(d.Count), fmt.Sprint(d.Bytes),
		fmt.Sprint(d.LeaderEpoch), d.Compression, newest, producer,
		fmt.Sprint(d.BaseSequence), d.Checksum)
	return err
}

// verifiedLog is one line of `log verify -o json`.
type verifiedLog struct {
	Dir      string   `json:"dir"`
	Segments int      `json:"segments"`
	Batches  int64    `json:"batches"`
	Bytes    int64    `json:"bytes"`
	Start    int64    `json:"start"`
	End      int64    `json:"end"` // exclusive
	Problems []string `json:"problems"`
}

func (a *app) logVerify(dir, keyring string) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	dirs, fsys, err := sealedLogs(dir, keyring)
	if err != nil {
		return err
	}
	p := a.printer(s)
	bad := 0
	var first error
	for _, d := range dirs {
		report, err := storage.VerifyLog(fsys, d)
		if err != nil {
			return &failure{what: "cannot read all of " + d, why: err}
		}
		if len(report.Problems) > 0 {
			if bad++; first == nil {
				first = report.Problems[0]
			}
		}
		if err := p.printVerified(d, report); err != nil {
			return err
		}
	}
	if bad > 0 {
		return &failure{what: fmt.Sprintf("%d of %d logs damaged", bad, len(dirs)), why: first, todo: "docs/operating says what recovery does with each kind of damage"}
	}
	return nil
}

func (p printer) printVerified(dir string, r storage.VerifyReport) error {
	v := verifiedLog{Dir: dir, Segments: r.Segments, Batches: r.Batches, Bytes: r.Bytes, Start: int64(r.Start), End: int64(r.End), Problems: []string{}}
	for _, problem := range r.Problems {
		v.Problems = append(v.Problems, oneLine(problem.Error()))
	}
	if p.json {
		return p.object(v)
	}
	verdict := "ok"
	if len(v.Problems) > 0 {
		verdict = "DAMAGED"
	}
	fmt.Fprintf(p.w, "%s: %s, offsets %d up to %d, %d batches, %d bytes in %d segments\n", dir, verdict, v.Start, v.End, v.Batches, v.Bytes, v.Segments)
	for _, problem := range v.Problems {
		if _, err := fmt.Fprintln(p.w, "  "+problem); err != nil {
			return err
		}
	}
	return nil
}
