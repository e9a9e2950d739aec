package server

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// The upgrade types of UpdateFeatures v1+.
const (
	featureUpgrade       = 1
	featureDowngradeLoss = 3
	// featureResultsUntil is the last version that answers feature by feature; later ones say in one text what was wrong.
	featureResultsUntil = 1
)

// handleUpdateFeatures judges changes of finalised features. There is nothing to change: the cluster's formats are versioned by
// themselves, and a feature that is finalised switches clients to a protocol (ApiVersions). So group.version is 1, every other feature is
// 0, and any other level is refused by name.
func (s *Server) handleUpdateFeatures(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.UpdateFeaturesRequest)
	resp := reply[*kmsg.UpdateFeaturesResponse](req)
	whole := wrongUpdates(req)
	for i := range req.FeatureUpdates {
		f := &req.FeatureUpdates[i]
		no := whole
		if whole.code == kafka.None {
			no = wrongUpdate(f, req.Version)
		}
		if req.Version <= featureResultsUntil {
			r := kmsg.NewUpdateFeaturesResponseResult()
			r.Feature, r.ErrorCode, r.ErrorMessage = f.Feature, int16(no.code), text(no.message)
			resp.Results = append(resp.Results, r)
			continue
		}
		if resp.ErrorCode == 0 {
			resp.ErrorCode, resp.ErrorMessage = int16(no.code), text(no.message)
		}
	}
	if whole.code != kafka.None {
		resp.ErrorCode, resp.ErrorMessage = int16(whole.code), text(whole.message)
	}
	return ready(resp)
}

// wrongUpdates says what is wrong with the request as a whole.
func wrongUpdates(req *kmsg.UpdateFeaturesRequest) refusal {
	switch {
	case len(req.FeatureUpdates) == 0:
		return refusal{kafka.InvalidRequest, "no feature is named"}
	case len(req.FeatureUpdates) > adminItemsMax:
		return tooManyItems
	}
	var names seen[string]
	for i := range req.FeatureUpdates {
		if names.add(req.FeatureUpdates[i].Feature) {
			return refusal{kafka.InvalidRequest, "feature " + clip(req.FeatureUpdates[i].Feature) + " is named more than once"}
		}
	}
	return refusal{}
}

func wrongUpdate(f *kmsg.UpdateFeaturesRequestFeatureUpdate, version int16) refusal {
	no := func(why string) refusal {
		return refusal{kafka.InvalidUpdateVersion, fmt.Sprintf("level %d of feature %s: %s", f.MaxVersionLevel, clip(f.Feature), why)}
	}
	switch {
	case version >= 1 && (f.UpgradeType < featureUpgrade || f.UpgradeType > featureDowngradeLoss):
		return no(fmt.Sprintf("upgrade type %d is unknown", f.UpgradeType))
	case f.MaxVersionLevel < 0:
		return no("a level is not below 0")
	case f.Feature == groupVersion && f.MaxVersionLevel == groupVersionLevel:
		return refusal{}
	case f.Feature == groupVersion:
		return no("its level is 1 and stays so")
	case f.MaxVersionLevel > 0:
		return no("no broker of this cluster supports the feature; its level is 0")
	}
	return refusal{}
}
