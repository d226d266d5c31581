package runlogtest

import (
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var floorCases = map[string]func(*bed){
	"floor/unknown": floorUnknown,
	"floor/moves":   floorMoves,
	"floor/erased":  floorErased,
}

func floorUnknown(b *bed) {
	run := b.chain("r").run
	for _, executor := range []string{"unknown", "", "a.b", "*", ">", runlog.Park, runlog.End} {
		_, err := b.log.AckFloor(b.ctx, run, executor)
		b.wantErr(err, runlog.ErrNotFound)
	}
	for _, executor := range []string{"repair", "compaction", "turn", "stopdecision"} {
		_, err := b.log.AckFloor(b.ctx, run, executor) // also before the first step to it
		b.must(err)
	}
}

// floor follows the ack floor of turn.
type floor struct {
	*chain
	deliveries <-chan runlog.Delivery
	held       map[uint64]runlog.Delivery // the last delivery of each step
	done       map[uint64]bool            // steps that are acknowledged on delivery
	newest     uint64
}

// read returns the ack floor, which must not decrease.
func (f *floor) read() uint64 {
	f.Helper()
	floor, err := f.log.AckFloor(f.ctx, f.run, "turn")
	f.must(err)
	if floor < f.newest {
		f.Fatalf("the floor went from %d back to %d", f.newest, floor)
	}
	f.newest = floor
	return floor
}

// ack acknowledges steps now, in order, and from now on.
func (f *floor) ack(steps ...runlog.Entry) {
	f.Helper()
	for _, e := range steps {
		f.done[e.Sequence] = true
		if d := f.held[e.Sequence]; d != nil {
			f.must(d.Ack())
		}
	}
}

// await receives deliveries until reached returns true. Meanwhile the floor must stay
// below the sequence below.
func (f *floor) await(what string, below uint64, reached func(floor uint64) bool) {
	f.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		floor := f.read()
		if floor >= below {
			f.Fatalf("the floor is at %d, and the step at %d was not acknowledged", floor, below)
		}
		if reached(floor) {
			return
		}
		select {
		case d := <-f.deliveries:
			sequence := d.Entry().Sequence
			if f.held[sequence] = d; f.done[sequence] {
				f.must(d.Ack())
			}
		case <-again.C:
		case <-f.ctx.Done():
			f.Fatalf("there is still not %s", what)
		}
	}
}

func (b *bed) floor(id string) *floor {
	deliveries, _ := b.consume("turn")
	return &floor{chain: b.chain(id), deliveries: deliveries, held: map[uint64]runlog.Delivery{}, done: map[uint64]bool{}}
}

// floorMoves checks that the floor is below the first unacknowledged step, and does not
// depend on steps to other executors.
func floorMoves(b *bed) {
	f := b.floor("r")
	f.append("repair")
	var steps []runlog.Entry
	for range 4 {
		f.append("")
		steps = append(steps, f.append("turn"))
		f.append("stopdecision")
	}
	first, second, third, fourth := steps[0].Sequence, steps[1].Sequence, steps[2].Sequence, steps[3].Sequence
	f.await("each step delivered", first, func(uint64) bool { return len(f.held) == 4 })

	f.ack(steps[1], steps[3])
	d := f.held[first]
	_ = d.Nak(0) // arrives after the acknowledgements, and so does its redelivery. Fails if the delivery has expired, which also brings it again.
	f.await("the first step again", first, func(uint64) bool { return f.held[first] != d })

	f.ack(steps[0])
	f.await("a floor at the second step", third, func(floor uint64) bool { return floor >= second })
	f.ack(steps[2])
	beyond := f.append("turn")
	f.await("a floor at the fourth step", beyond.Sequence, func(floor uint64) bool { return floor >= fourth })
	f.ack(beyond)
	f.await("a floor at the last step", beyond.Sequence+1_000_000, func(floor uint64) bool { return floor >= beyond.Sequence })
}

// floorErased checks that an erased step does not block the floor.
func floorErased(b *bed) {
	f, gone := b.floor("r"), b.chain("gone")
	open := gone.append("turn")
	step := f.append("turn")
	f.await("both steps delivered", step.Sequence, func(uint64) bool { return f.held[open.Sequence] != nil && f.held[step.Sequence] != nil })
	b.must(b.log.Erase(b.ctx, gone.run, 0, runlog.Everything))
	f.ack(step)
	f.await("a floor at the step", step.Sequence+1, func(floor uint64) bool { return floor >= step.Sequence })
}
