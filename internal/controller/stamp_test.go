package controller

import (
	"testing"

	"strandline.dev/internal/metadata"
)

// TestR181_RightsUsersAndQuotasAreChanges: what an administrator does counts as an administrative change, what nodes do by themselves does not.
func TestR181_RightsUsersAndQuotasAreChanges(t *testing.T) {
	for _, ev := range []metadata.Event{metadata.CreateTopics{}, metadata.CreateACLs{}, metadata.DeleteACLs{}, metadata.AlterScram{}, metadata.AlterQuotas{}, metadata.RemoveBroker{}} {
		if !administrative(ev) {
			t.Errorf("%T is not counted", ev)
		}
	}
	for _, ev := range []metadata.Event{metadata.RegisterBroker{}, metadata.AlterISR{}, metadata.AllocateProducerIDs{}, metadata.ExpireTrash{}} {
		if administrative(ev) {
			t.Errorf("%T is counted", ev)
		}
	}
}
