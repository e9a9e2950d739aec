package server

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

const (
	// groupVersion is the feature that tells clients that there are consumer groups (KIP-848); its level is the same for ever.
	groupVersion      = "group.version"
	groupVersionLevel = 1
	// featuresFromZero is the first ApiVersions version whose clients bear a supported feature that begins at level 0 (KAFKA-17011).
	featuresFromZero = 4
)

// Served lists the APIs that this build answers, by key: what ApiVersions advertises while strandline.protocol.cap caps nothing.
func Served() []wire.API { return served() }

// handleApiVersions lists what has a handler, with the ranges of the version table (KIP-511). Versions above ours never get here: their
// layout is unknown, so the connection answers them itself (frame.go).
func (s *Server) handleApiVersions(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ApiVersionsRequest)
	resp := reply[*kmsg.ApiVersionsResponse](req)
	resp.ErrorCode = int16(s.checkClient(req))
	if resp.ErrorCode != 0 {
		return ready(resp)
	}
	for _, a := range s.apis {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.AdvertisedMin, a.Max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	// The epoch says from which Image features were read. Advertising transaction.version before transactions are complete would switch
	// Java producers to a protocol that is not there.
	if slices.ContainsFunc(s.apis, func(a wire.API) bool { return a.Key == wire.KeyConsumerGroupHeartbeat }) {
		f := kmsg.NewApiVersionsResponseFinalizedFeature()
		f.Name, f.MaxVersionLevel, f.MinVersionLevel = groupVersion, groupVersionLevel, groupVersionLevel
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, f)
	}
	if len(resp.FinalizedFeatures) > 0 && req.Version >= featuresFromZero {
		f := kmsg.NewApiVersionsResponseSupportedFeature()
		f.Name, f.MaxVersion = groupVersion, groupVersionLevel
		resp.SupportedFeatures = append(resp.SupportedFeatures, f)
	}
	resp.FinalizedFeaturesEpoch = int64(s.cfg.Image().Version())
	return ready(resp)
}

// checkClient judges what a client says about itself (v3+) and whom it believes to speak to (v5+).
func (s *Server) checkClient(req *kmsg.ApiVersionsRequest) kafka.ErrorCode {
	if req.Version >= 3 && (!softwareName(req.ClientSoftwareName) || !softwareName(req.ClientSoftwareVersion)) {
		return kafka.InvalidRequest
	}
	if req.Version < 5 || (req.ClusterID == nil && req.NodeID < 0) {
		return kafka.None
	}
	if req.ClusterID == nil || req.NodeID < 0 {
		return kafka.InvalidRequest
	}
	if *req.ClusterID != s.cfg.Image().ClusterID() || kafka.NodeID(req.NodeID) != s.cfg.Node {
		return kafka.RebootstrapRequired // the address belongs to another node or cluster now (KIP-1242)
	}
	return kafka.None
}

// softwareName says whether s is letters and digits, with '-' and '.' between them.
func softwareName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		inner := i > 0 && i < len(s)-1 && (c == '-' || c == '.')
		if !alnum && !inner {
			return false
		}
	}
	return len(s) > 0
}
