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

var works = map[string]func(){
	"idle-10000":    func() { idle(10000) },
	"idle-100000":   func() { idle(100000) },
	"idle-1000000":  func() { idle(1000000) },
	"restart-error": func() { restart(failing) },
	"restart-panic": func() { restart(panicking) },
	"storm-error":   func() { storm(failing) },
	"storm-panic":   func() { storm(panicking) },
	"crash-loop":    crashLoop,
	"deep":          func() { nested(1001, 1) },
	"wide":          func() { nested(4, 10) },
}

func main() {
	works[os.Args[1]]()
}

// --- Measurements ---------------------------------------------------------------------------------

func idle(n int) {
	before := peakBytes()
	started.expect(n)
	began := time.Now()
	app := supervisor()
	for i := 0; i < n; i++ {
		app.Add(service(idling))
	}
	tree := up(app)
	started.wait()
	say("start", nanos(began)/float64(n))
	say("bytes", float64(peakBytes()-before)/float64(n))
	say("stop", tree.stop(n)/float64(n))
}

// The service fails as soon as it has restarted.
func restart(fail func() error) {
	var took []float64
	var failed time.Time
	began, over := time.Now(), make(chan struct{})
	app := supervisor()
	app.Add(service(func(ctx context.Context) error {
		if !failed.IsZero() {
			took = append(took, nanos(failed))
		}
		if len(took) == restarts || time.Since(began) > patience {
			close(over)
			return idling(ctx)
		}
		runtime.Gosched()
		failed = time.Now()
		return fail()
	}))
	up(app)
	<-over
	say("p50", p50(took))
}

// Each service fails on demand, and then as soon as it has restarted.
func storm(fail func() error) {
	started.expect(children)
	app := supervisor()
	all := make(chan struct{})
	for i := 0; i < children; i++ {
		runs := 0
		app.Add(service(func(ctx context.Context) error {
			runs++
			if runs > times {
				return idling(ctx)
			}
			started.one()
			if runs == 1 {
				<-all
			}
			return fail()
		}))
	}
	up(app)
	started.wait()
	started.expect(children * times)
	began := time.Now()
	close(all)
	started.wait()
	say("each", nanos(began)/(children*times))
}

// The first service fails on demand, and then as soon as it has restarted, without end.
func crashLoop() {
	started.expect(children)
	app := supervisor()
	loop, loops := make(chan struct{}), false
	app.Add(service(func(ctx context.Context) error {
		if !loops {
			started.one()
			<-loop
			loops = true
		}
		return failing()
	}))
	for i := 1; i < children; i++ {
		app.Add(service(idling))
	}
	up(app)
	started.wait()
	say("calm", p50(add(app)))
	close(loop)
	say("beside", p50(add(app)))
}

func add(app *suture.Supervisor) []float64 {
	var took []float64
	here := make(chan time.Time)
	arriving := service(func(ctx context.Context) error {
		here <- time.Now()
		return idling(ctx)
	})
	began := time.Now()
	for i := 0; i < added && time.Since(began) < patience; i++ {
		at := time.Now()
		app.Add(arriving)
		took = append(took, float64((<-here).Sub(at)))
	}
	return took
}

func nested(levels, width int) {
	services := int(math.Pow(float64(width), float64(levels)))
	started.expect(services)
	began := time.Now()
	tree := up(level(levels, width))
	started.wait()
	say("build", nanos(began)/1e6)
	say("stop", tree.stop(services)/1e6)
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
func level(levels, width int) *suture.Supervisor {
	above := supervisor()
	for i := 0; i < width; i++ {
		if levels == 1 {
			above.Add(service(idling))
		} else {
			above.Add(level(levels-1, width))
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

type service func(context.Context) error

func (serve service) Serve(ctx context.Context) error {
	return serve(ctx)
}

func idling(ctx context.Context) error {
	started.one()
	<-ctx.Done()
	gone.one()
	return ctx.Err()
}

var errLuck = errors.New("out of luck")

func failing() error {
	return errLuck
}

func panicking() error {
	// Not an error: the supervisor accepts only strings.
	panic("out of luck")
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
