package server

import (
	"sync"

	"strandline.dev/internal/config"
	"strandline.dev/internal/metadata"
)

// settings are the broker's and the topics' settings by one Image, resolved once: every frame asks for some of them.
type settings struct {
	img    *metadata.Image
	broker config.Broker
	topics sync.Map // of *metadata.Topic to *config.Topic; both die with the Image
}

// settings returns those of the newest Image.
func (s *Server) settings() *settings {
	img := s.cfg.Image()
	if st := s.resolved.Load(); st != nil && st.img == img {
		return st
	}
	st := &settings{img: img, broker: s.cfg.Broker()}
	s.resolved.Store(st)
	return st
}

// broker returns the broker settings in force. They must not be changed.
func (s *Server) broker() *config.Broker { return &s.settings().broker }

// topicConfig returns the settings in force for a topic. They must not be changed.
func (s *Server) topicConfig(t *metadata.Topic) *config.Topic {
	st := s.settings()
	if c, ok := st.topics.Load(t); ok {
		return c.(*config.Topic)
	}
	c := s.cfg.TopicConfig(t)
	st.topics.Store(t, &c)
	return &c
}
