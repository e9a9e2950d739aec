package embedded

import "time"

const (
	// readyTimeMax bounds a start with its topics. It takes a fraction of a second; a machine that needs longer is stuck.
	readyTimeMax = time.Minute
	// topicRetryPause is between looks whether the topics have leaders.
	topicRetryPause = 2 * time.Millisecond
)

// logLinesMax bounds the log lines that are kept for a test that fails.
const logLinesMax = 2000
