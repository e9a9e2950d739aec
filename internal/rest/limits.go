package rest

import "time"

const (
	// headerBytesMax bounds the headers of one request (H1, H2).
	headerBytesMax = 64 << 10
	// headerTimeMax bounds how long a client may take to send its headers (H4).
	headerTimeMax = 10 * time.Second
	// requestTimeMax bounds one whole request; health and metrics answer in milliseconds.
	requestTimeMax = 30 * time.Second
	// idleTimeMax bounds an idle keep-alive connection (H17).
	idleTimeMax = 2 * time.Minute
	// bodyBytesMax bounds a request body; today's routes take none.
	bodyBytesMax = 1 << 20
)
