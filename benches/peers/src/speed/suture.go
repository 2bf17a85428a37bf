// Go suture: services of its supervisor, with a threshold that is never reached. Does one
// measurement, as the Rust programs do, and prints what they print.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/thejerf/suture/v4"
)

const (
	children = 10000
	times    = 10
	restarts = 20000
	added    = 1000
	// The longest time for repetitions.
	patience = 2 * time.Second
	// Longer than any stop takes.
	grace = 10 * time.Minute
)

var errLuck = errors.New("out of luck")

func main() {
	switch os.Args[1] {
	case "idle-10000":
		idle(10000)
	case "idle-100000":
		idle(100000)
	case "idle-1000000":
		idle(1000000)
	case "restart-error":
		restart(false)
	case "restart-panic":
		restart(true)
	case "storm-error":
		storm(false)
	case "storm-panic":
		storm(true)
	case "crash-loop":
		crashLoop()
	case "deep":
		widths := make([]int, 1001)
		for i := range widths {
			widths[i] = 1
		}
		nested(widths)
	case "wide":
		nested([]int{10, 10, 10, 10})
	default:
		os.Exit(1)
	}
}

// --- Measurements ---------------------------------------------------------------------------------

func idle(n int) {
	before := peakBytes()
	started.expect(n)
	began := time.Now()
	app := supervisor()
	for i := 0; i < n; i++ {
		app.Add(idler{})
	}
	tree := up(app)
	started.wait()
	say("start", nanos(began)/float64(n))
	say("bytes", float64(peakBytes()-before)/float64(n))
	say("stop", tree.stop(n)/float64(n))
}

func restart(panics bool) {
	over := make(chan struct{})
	app := supervisor()
	app.Add(&again{panics: panics, began: time.Now(), over: over})
	up(app)
	<-over
	say("p50", p50(took))
}

func storm(panics bool) {
	started.expect(children)
	app := supervisor()
	all := make(chan struct{})
	for i := 0; i < children; i++ {
		app.Add(&stormy{panics: panics, all: all})
	}
	up(app)
	started.wait()
	started.expect(children * times)
	began := time.Now()
	close(all)
	started.wait()
	say("each", nanos(began)/(children*times))
}

func crashLoop() {
	started.expect(children)
	app := supervisor()
	app.Add(&looping{})
	for i := 1; i < children; i++ {
		app.Add(idler{})
	}
	up(app)
	started.wait()
	say("calm", p50(add(app)))
	fail <- struct{}{}
	say("beside", p50(add(app)))
}

func add(app *suture.Supervisor) []float64 {
	var took []float64
	here := make(chan time.Time)
	began := time.Now()
	for i := 0; i < added && time.Since(began) < patience; i++ {
		at := time.Now()
		app.Add(arriving{here})
		took = append(took, float64((<-here).Sub(at)))
	}
	return took
}

func nested(widths []int) {
	leaves := 1
	for _, width := range widths {
		leaves *= width
	}
	started.expect(leaves)
	began := time.Now()
	tree := up(level(widths))
	started.wait()
	say("build", nanos(began)/1e6)
	say("stop", tree.stop(leaves)/1e6)
}

// --- Supervisors ----------------------------------------------------------------------------------

func supervisor() *suture.Supervisor {
	return suture.New("app", suture.Spec{
		EventHook:        func(suture.Event) {},
		FailureThreshold: math.MaxFloat64,
		Timeout:          grace,
	})
}

// A supervisor of supervisors or, on the last level, of services.
func level(widths []int) *suture.Supervisor {
	above := supervisor()
	for i := 0; i < widths[0]; i++ {
		if len(widths) == 1 {
			above.Add(idler{})
		} else {
			above.Add(level(widths[1:]))
		}
	}
	return above
}

type tree struct {
	cancel context.CancelFunc
	ended  <-chan error
}

func up(app *suture.Supervisor) tree {
	ctx, cancel := context.WithCancel(context.Background())
	return tree{cancel, app.ServeBackground(ctx)}
}

// Until the supervisor has ended and the last service is gone.
func (tree tree) stop(services int) float64 {
	gone.expect(services)
	began := time.Now()
	tree.cancel()
	<-tree.ended
	gone.wait()
	return nanos(began)
}

// --- Services -------------------------------------------------------------------------------------

type idler struct{}

func (idler) Serve(ctx context.Context) error {
	started.one()
	<-ctx.Done()
	gone.one()
	return ctx.Err()
}

// Makes the listening service fail.
var fail = make(chan struct{})

// A service that fails as soon as it has restarted. The time of each restart is kept.
type again struct {
	panics        bool
	began, failed time.Time
	over          chan<- struct{}
}

var took []float64

func (it *again) Serve(ctx context.Context) error {
	if !it.failed.IsZero() {
		took = append(took, nanos(it.failed))
	}
	if len(took) == restarts || time.Since(it.began) > patience {
		close(it.over)
		<-ctx.Done()
		return ctx.Err()
	}
	runtime.Gosched()
	it.failed = time.Now()
	return failing(it.panics)
}

// A service that fails on demand, and then as soon as it has restarted.
type stormy struct {
	panics bool
	all    chan struct{}
	runs   int
}

func (it *stormy) Serve(ctx context.Context) error {
	it.runs++
	started.one()
	if it.runs == 1 {
		<-it.all
	} else if it.runs > times {
		<-ctx.Done()
		return ctx.Err()
	}
	return failing(it.panics)
}

// A service that fails on demand, and then as soon as it has restarted, without end.
type looping struct {
	loops bool
}

func (it *looping) Serve(ctx context.Context) error {
	if !it.loops {
		started.one()
		<-fail
		it.loops = true
	}
	return errLuck
}

// A service that reports its start.
type arriving struct {
	here chan<- time.Time
}

func (it arriving) Serve(ctx context.Context) error {
	it.here <- time.Now()
	<-ctx.Done()
	return ctx.Err()
}

func failing(panics bool) error {
	if panics {
		// Not an error: the supervisor accepts only strings.
		panic("out of luck")
	}
	return errLuck
}

// --- Counters and figures -------------------------------------------------------------------------

var started, gone = count{reached: make(chan struct{}, 1)}, count{reached: make(chan struct{}, 1)}

// A counter with a goal that can be awaited.
type count struct {
	now, goal int64
	reached   chan struct{}
}

func (count *count) expect(more int) {
	atomic.StoreInt64(&count.goal, atomic.LoadInt64(&count.now)+int64(more))
}

func (count *count) one() {
	if atomic.AddInt64(&count.now, 1) == atomic.LoadInt64(&count.goal) {
		count.reached <- struct{}{}
	}
}

func (count *count) wait() {
	<-count.reached
}

func nanos(since time.Time) float64 {
	return float64(time.Since(since))
}

func p50(took []float64) float64 {
	sort.Float64s(took)
	return took[len(took)/2]
}

func say(key string, figure float64) {
	fmt.Println(key, figure)
}

func peakBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	kib := regexp.MustCompile(`VmHWM:\s*(\d+)`).FindSubmatch(status)
	peak, err := strconv.ParseInt(string(kib[1]), 10, 64)
	if err != nil {
		panic(err)
	}
	return peak * 1024
}
