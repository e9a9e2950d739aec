package quorum

import (
	"context"
	"fmt"
	"log/slog"
)

// raftLogger sends raft's own lines to the log at debug: they explain an election to a developer, not to an operator.
// Warnings and errors of raft are about peers and lost proposals, which this package reports itself.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) line(args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("raft", "line", fmt.Sprint(args...))
	}
}

func (l raftLogger) linef(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("raft", "line", fmt.Sprintf(format, args...))
	}
}

// Debug and its seven sisters implement raft.Logger.
func (l raftLogger) Debug(v ...any) { l.line(v...) }

// Debugf is Debug with a format.
func (l raftLogger) Debugf(format string, v ...any) { l.linef(format, v...) }

// Error logs at debug, see raftLogger.
func (l raftLogger) Error(v ...any) { l.line(v...) }

// Errorf is Error with a format.
func (l raftLogger) Errorf(format string, v ...any) { l.linef(format, v...) }

// Info logs at debug, see raftLogger.
func (l raftLogger) Info(v ...any) { l.line(v...) }

// Infof is Info with a format.
func (l raftLogger) Infof(format string, v ...any) { l.linef(format, v...) }

// Warning logs at debug, see raftLogger.
func (l raftLogger) Warning(v ...any) { l.line(v...) }

// Warningf is Warning with a format.
func (l raftLogger) Warningf(format string, v ...any) { l.linef(format, v...) }

// Fatal means a broken invariant of raft. It panics rather than exit, so that the stack is printed.
func (l raftLogger) Fatal(v ...any) { panic("raft: " + fmt.Sprint(v...)) }

// Fatalf is Fatal with a format.
func (l raftLogger) Fatalf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }

// Panic means a broken invariant of raft.
func (l raftLogger) Panic(v ...any) { panic("raft: " + fmt.Sprint(v...)) }

// Panicf is Panic with a format.
func (l raftLogger) Panicf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
