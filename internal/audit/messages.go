package audit

import (
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

const (
	typeDelivery       = uint16(peer.KindAudit)
	typeDeliveryAnswer = uint16(peer.KindAudit) + 0x4000
	deliveryVersion    = 0
)

// delivery brings entries to the leader of a chain.
type delivery struct {
	Chain   int32
	Entries []Entry
}

// deliveryAnswer says why they are not kept, or "".
type deliveryAnswer struct{ Text string }

func (*delivery) Kind() peer.Kind       { return peer.KindAudit }
func (*deliveryAnswer) Kind() peer.Kind { return peer.KindAudit }

// Append implements peer.Message.
func (m *delivery) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeDelivery, deliveryVersion)
	e.Int32(m.Chain)
	wire.AppendArray(&e, m.Entries, func(e *wire.Encoder, n Entry) { e.Bytes(n.Append(nil)) })
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *delivery) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeDelivery, deliveryVersion)
	*m = delivery{Chain: d.Int32()}
	m.Entries = wire.ReadArray(d, 1, func(d *wire.Decoder) (n Entry) {
		if raw := d.Bytes(); d.Err() == nil {
			if err := n.Decode(raw); err != nil {
				d.Fail(err)
			}
		}
		return n
	})
	d.Tags(nil)
	return d.Done()
}

// Append implements peer.Message.
func (m *deliveryAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeDeliveryAnswer, deliveryVersion)
	e.String(m.Text)
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *deliveryAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeDeliveryAnswer, deliveryVersion)
	*m = deliveryAnswer{Text: d.String()}
	d.Tags(nil)
	return d.Done()
}
