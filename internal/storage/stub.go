package storage

import (
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
)

type Dir struct{}
type Log struct{}
type Syncer struct{}

func OpenDir(o DirOptions) (*Dir, error)                                           { panic(0) }
func (d *Dir) Identity() Identity                                                  { panic(0) }
func (d *Dir) SetIdentity(clusterID string, node kafka.NodeID) error               { panic(0) }
func (d *Dir) StartNumber() uint64                                                 { panic(0) }
func (d *Dir) BootID() string                                                      { panic(0) }
func (d *Dir) PreviousBootID() string                                              { panic(0) }
func (d *Dir) CleanShutdown() (kafka.BrokerEpoch, bool)                            { panic(0) }
func (d *Dir) CommitBootID() error                                                 { panic(0) }
func (d *Dir) Path() string                                                        { panic(0) }
func (d *Dir) MetadataDir() string                                                 { panic(0) }
func (d *Dir) Syncer() *Syncer                                                     { panic(0) }
func (d *Dir) PartitionDirs() ([]kafka.TopicPartition, error)                      { panic(0) }
func (d *Dir) OpenLog(tp kafka.TopicPartition, o LogOptions) (*Log, error)         { panic(0) }
func (d *Dir) OpenMetadataLog(o LogOptions) (*Log, error)                          { panic(0) }
func (d *Dir) DropLog(tp kafka.TopicPartition) error                               { panic(0) }
func (d *Dir) QuarantineLog(tp kafka.TopicPartition) error                         { panic(0) }
func (d *Dir) Quarantined() ([]kafka.TopicPartition, error)                        { panic(0) }
func (d *Dir) RestoreQuarantined(tp kafka.TopicPartition) error                    { panic(0) }
func (d *Dir) SavePoints(hw func(kafka.TopicPartition) kafka.Offset) error         { panic(0) }
func (d *Dir) Close(o CloseOptions) error                                          { panic(0) }
func (l *Log) SetOptions(o LogOptions)                                             { panic(0) }
func (l *Log) Recovered() Recovery                                                 { panic(0) }
func (l *Log) Append(epoch kafka.LeaderEpoch, b record.Batch, at time.Time) (Appended, error) {
	panic(0)
}
func (l *Log) AppendReplicated(batches []byte, at time.Time) (kafka.Offset, error) { panic(0) }
func (l *Log) CheckSequence(b record.Batch, now time.Time) (SequenceCheck, error)  { panic(0) }
func (l *Log) TruncateTo(end kafka.Offset) error                                   { panic(0) }
func (l *Log) AdvanceStart(start kafka.Offset) error                               { panic(0) }
func (l *Log) Reset(start kafka.Offset) error                                      { panic(0) }
func (l *Log) Read(from, upper kafka.Offset, r ReadLimits, dst []byte) ([]byte, error) {
	panic(0)
}
func (l *Log) Start() kafka.Offset                                     { panic(0) }
func (l *Log) End() kafka.Offset                                       { panic(0) }
func (l *Log) StoredEnd() kafka.Offset                                 { panic(0) }
func (l *Log) Size() int64                                             { panic(0) }
func (l *Log) SizeBetween(a, b kafka.Offset) int64                     { panic(0) }
func (l *Log) LatestEpoch() kafka.LeaderEpoch                          { panic(0) }
func (l *Log) EpochEndFor(e kafka.LeaderEpoch) kafka.EpochEnd          { panic(0) }
func (l *Log) EpochAt(off kafka.Offset) kafka.LeaderEpoch              { panic(0) }
func (l *Log) AssignEpoch(e kafka.LeaderEpoch) error                   { panic(0) }
func (l *Log) OffsetForTime(ts int64, upper kafka.Offset) (TimestampOffset, bool, error) {
	panic(0)
}
func (l *Log) MaxTimestamp(upper kafka.Offset) (TimestampOffset, bool, error) { panic(0) }
func (l *Log) ApplyRetention(p RetentionPolicy, hw kafka.Offset, now time.Time) (kafka.Offset, error) {
	panic(0)
}
func (l *Log) LastStable(hw kafka.Offset) kafka.Offset { panic(0) }
func (l *Log) Producers() []ProducerEntry              { panic(0) }
func (l *Log) Sync() error                             { panic(0) }
func (l *Log) Damaged() error                          { panic(0) }
func (l *Log) Close() error                            { panic(0) }

func DumpLog(fs sys.FS, dir string, fn func(DumpedBatch) error) error { panic(0) }
func VerifyLog(fs sys.FS, dir string) (VerifyReport, error)           { panic(0) }
