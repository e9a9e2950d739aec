package sys

import "time"

// WallStepMax is how far the wall clock may move against the monotonic one before ages mean nothing and nothing is deleted by age: NTP
// slews and leap seconds stay far below, a wrong battery clock or an operator's typing error lies far above.
const WallStepMax = 5 * time.Minute

// WallWatch compares the wall clock with the monotonic one. Ages are differences of wall times: after a step of the wall clock they mean
// nothing, and deleting by them would break the promise of I9. A step before the watch began cannot be seen.
type WallWatch struct {
	wall   Wall
	wallAt time.Time
	monoAt time.Time
}

// WatchWall begins a watch.
func WatchWall(w Wall) WallWatch {
	return WallWatch{wall: w, wallAt: w.Now().Round(0), monoAt: time.Now()}
}

// Now returns the wall time, how far it has moved against the time that has passed since the watch began, and whether that is within
// WallStepMax.
func (c WallWatch) Now() (wall time.Time, step time.Duration, sane bool) {
	wall = c.wall.Now().Round(0) // without the monotonic part, which would hide a step
	step = wall.Sub(c.wallAt) - time.Since(c.monoAt)
	return wall, step, step.Abs() <= WallStepMax
}
