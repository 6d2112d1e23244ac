package weirtest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"weir"
)

const part = `\.[A-Za-z0-9_-]+`
const by = `,by=(?:(?:args|meta)` + part + `|id|type|cost|key|timeout|max_attempts|traceparent)(?:` + part + `)*`

var (
	units = map[string]int64{"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6, "d": 86400e6, "w": 7 * 86400e6}
	rate  = regexp.MustCompile(`^(\d+)/(\d+(?:\.\d+)?)?(us|ms|s|m|h|d|w)((?:,burst=\d+|,algorithm=(?:gcra|token-bucket|fixed-window|sliding-log)|,of=[a-z][a-z0-9_]{0,31}|` + by + `)*)$`)
	jobs  = regexp.MustCompile(`^concurrency=(\d+)((?:` + by + `)*)$`)
)

const countMost, periodMost = 1000000000, 3650 * 86400e6

const never, later = -1, 1 << 62 // of a start: never; of concurrency: when a job ends

type rule struct {
	text, by, of         string
	algorithm            string
	count, burst, period int64
}

func readRule(text string) (rule, error) {
	r := rule{text: text, of: "plain", algorithm: "gcra"}
	refuse := func(why string) (rule, error) {
		return r, &weir.InvalidError{Why: "rule '" + text + "': " + why, Member: "rules"}
	}
	period := big.NewRat(periodMost, 1)
	parts := rate.FindStringSubmatch(text)
	if parts != nil {
		period.SetInt64(units[parts[3]])
		if number, given := new(big.Rat).SetString(parts[2]); given {
			period.Mul(period, number)
		}
	} else if parts = jobs.FindStringSubmatch(text); parts != nil {
		r.algorithm = "concurrency"
	} else {
		return refuse("the test mode has no months, zones, offset=, adapt= or sliding-window; write it as 100/1m,burst=5,by=key or concurrency=5")
	}
	r.count, _ = strconv.ParseInt(parts[1], 10, 64) // too large a number is the largest
	r.burst = r.count
	seen := map[string]bool{}
	for _, option := range strings.Split(parts[len(parts)-1], ",")[1:] {
		name, value, _ := strings.Cut(option, "=")
		if seen[name] {
			return refuse("an option is there twice")
		}
		switch seen[name] = true; name {
		case "burst":
			r.burst, _ = strconv.ParseInt(value, 10, 64)
		case "by":
			r.by = value
		case "of":
			r.of = value
		default:
			r.algorithm = value
		}
	}
	switch {
	case seen["of"] && r.of == "plain":
		return refuse("of=plain is left out")
	case len(r.by) > 128:
		return refuse("the path behind by= is longer than 128 characters")
	case r.count < 1 || r.count > countMost || r.burst < 1 || r.burst > countMost:
		return refuse("the count and the burst must be 1 to 1000000000")
	case r.algorithm == "sliding-log" && r.count > 10000:
		return refuse("sliding-log takes a count of at most 10000")
	case !period.IsInt() || period.Sign() == 0 || period.Cmp(big.NewRat(periodMost, 1)) > 0:
		return refuse("the period must be whole microseconds, and at most ten years")
	}
	r.period = period.Num().Int64()
	switch slots := big.NewRat(r.burst-1, r.count); {
	case r.period < r.count:
		return refuse("more than 1000000 a second")
	case seen["burst"] && (r.algorithm == "fixed-window" || r.algorithm == "sliding-log"):
		return refuse(r.algorithm + " has no burst")
	case slots.Mul(slots, period).Cmp(big.NewRat(periodMost, 1)) > 0:
		return refuse("a burst that takes more than ten years")
	}
	return r, nil
}

// costs are what is said of a cost, by name; "plain" too.
type costs map[string]int64

// word is a cost as places of a line have it.
func (c costs) word() string {
	var parts []string
	for name, n := range c {
		if name != "plain" {
			parts = append(parts, fmt.Sprintf("%s:%d", name, n))
		}
	}
	sort.Strings(parts)
	if n, said := c["plain"]; said {
		parts = append([]string{strconv.FormatInt(n, 10)}, parts...)
	}
	return strings.Join(parts, ",")
}

// takes is how many slots a job of that cost takes; unsaid: where it does not say.
func (r *rule) takes(cost costs, unsaid int64) int64 {
	if r.of == "jobs" || r.algorithm == "concurrency" {
		return 1
	}
	if n, said := cost[r.of]; said {
		return n
	}
	return unsaid
}

type start struct{ at, cost int64 }

// A gate is the state of a rule, of one key. Times are whole microseconds.
type gate struct {
	rule
	tat     *big.Rat // of gcra, when all is as if never used
	log     []start  // of a window, or of a period
	running int64
}

func (g *gate) smooth() bool { return g.algorithm == "gcra" || g.algorithm == "token-bucket" }

func (g *gate) window(at int64) int64 { return at - at%g.period }

func (g *gate) live(now int64) (live []start, used int64) {
	for _, one := range g.log {
		if g.algorithm == "fixed-window" && one.at >= g.window(now) || g.algorithm == "sliding-log" && one.at > now-g.period {
			live, used = append(live, one), used+one.cost
		}
	}
	return live, used
}

// slots is how long so many of them take.
func (g *gate) slots(n int64) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(g.period, g.count), new(big.Rat).SetInt64(n))
}

func ceiling(r *big.Rat) int64 {
	up := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return up.Div(up, r.Denom()).Int64()
}

func latest(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

// start returns when such a start may be.
func (g *gate) start(now int64, said costs) int64 {
	cost := g.takes(said, 1)
	if cost == 0 {
		return now
	}
	if g.algorithm == "concurrency" {
		if g.running < g.count {
			return now
		}
		return later
	}
	if cost > g.burst {
		return never
	}
	if g.smooth() {
		return latest(now, ceiling(new(big.Rat).Sub(g.tat, g.slots(g.burst-cost))))
	}
	live, used := g.live(now)
	excess := used + cost - g.count
	if excess <= 0 {
		return now
	}
	if g.algorithm == "fixed-window" {
		return g.window(now) + g.period
	}
	for _, one := range live {
		if excess -= one.cost; excess <= 0 {
			return one.at + g.period
		}
	}
	panic("a cost above the burst was answered before")
}

func (g *gate) take(now int64, said costs) {
	cost := g.takes(said, 1)
	switch {
	case cost == 0:
	case g.algorithm == "concurrency":
		g.running++
	case g.smooth():
		if now > ceiling(g.tat) {
			g.tat = new(big.Rat).SetInt64(now)
		}
		g.tat = new(big.Rat).Add(g.tat, g.slots(cost))
	default:
		live, _ := g.live(now)
		g.log = append(live, start{now, cost})
	}
}

// settle says that what started then has cost so much in truth.
func (g *gate) settle(at int64, said, truth costs) {
	cost := g.takes(said, 1)
	spent := g.takes(truth, cost)
	if g.smooth() {
		g.tat = new(big.Rat).Add(g.tat, g.slots(spent-cost))
	}
	for i := range g.log {
		if g.log[i] == (start{at, cost}) {
			g.log[i].cost = spent
			break
		}
	}
}

func (g *gate) end() {
	if g.algorithm == "concurrency" {
		g.running--
	}
}

func (g *gate) remaining(now int64) int64 {
	if g.algorithm == "concurrency" {
		return g.count - g.running
	}
	if !g.smooth() {
		_, used := g.live(now)
		return latest(0, g.count-used)
	}
	used := new(big.Rat).Sub(g.tat, new(big.Rat).SetInt64(now))
	if used.Sign() <= 0 {
		return g.burst
	}
	return latest(0, g.burst-ceiling(used.Quo(used, g.slots(1))))
}

// resets returns when all is as if never used.
func (g *gate) resets(now int64) int64 {
	if g.smooth() {
		return latest(now, ceiling(g.tat))
	}
	live, _ := g.live(now)
	switch {
	case len(live) == 0:
		return now
	case g.algorithm == "fixed-window":
		return g.window(now) + g.period
	}
	return live[len(live)-1].at + g.period
}

type place struct {
	rule int
	key  string
}

type limit struct {
	rules  []rule
	by     string
	pauses map[string]int64 // by key, where it has some
	gates  map[place]*gate
}

func readLimit(texts []string) (*limit, error) {
	l := &limit{gates: map[place]*gate{}, pauses: map[string]int64{}}
	for _, text := range strings.Fields(strings.Join(texts, " ")) {
		r, err := readRule(text)
		if err != nil {
			return nil, err
		}
		if r.by != "" && l.by != "" && r.by != l.by {
			return nil, &weir.InvalidError{Why: "all keyed rules of a limit use one path", Member: "rules"}
		}
		if r.by != "" {
			l.by = r.by
		}
		l.rules = append(l.rules, r)
	}
	if len(l.rules) < 1 || len(l.rules) > 8 {
		return nil, &weir.InvalidError{Why: "a limit has one to eight rules", Member: "rules"}
	}
	return l, nil
}

func (l *limit) pause(key string, until int64) {
	if l.by == "" {
		key = ""
	}
	l.pauses[key] = until
}

func (l *limit) paused(key string) int64 {
	if l.by == "" {
		key = ""
	}
	return l.pauses[key]
}

func (l *limit) of(key string) []*gate {
	var gates []*gate
	for i, r := range l.rules {
		at := place{rule: i}
		if r.by != "" {
			at.key = key
		}
		if l.gates[at] == nil {
			l.gates[at] = &gate{rule: r, tat: new(big.Rat)}
		}
		gates = append(gates, l.gates[at])
	}
	return gates
}

// keyOf returns the key of a job: the value at the path of the rules.
func (l *limit) keyOf(document []byte) string {
	var value any
	if l.by == "" || json.Unmarshal(document, &value) != nil {
		return "-"
	}
	for _, name := range strings.Split(l.by, ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	if value == nil {
		return "-"
	}
	return fmt.Sprint(value)
}
