package helenus

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Test is a server that one test has for itself until its end. Its methods end the test when they fail.
type Test struct {
	*Server
	tb testing.TB
}

var (
	idleLock sync.Mutex
	// idle holds the servers that no test has at the moment, by their options. There are never more than tests ran at the same time.
	idle = map[string][]*Server{}
)

// New gives the test an empty server: no faults, full budgets, today's time, no rows. Tables that earlier tests made are there, and empty.
// Tests that run at the same time (t.Parallel) get a server each; later tests use these again. When the test fails, the last lines of the
// server's log stand in its output. Without options, the server is a plain Cassandra.
func New(tb testing.TB, options ...Options) *Test {
	tb.Helper()
	var chosen Options
	if len(options) > 0 {
		chosen = options[0]
	}
	key := fmt.Sprintf("%#v", chosen)
	idleLock.Lock()
	var server *Server
	if free := idle[key]; len(free) > 0 {
		server, idle[key] = free[len(free)-1], free[:len(free)-1]
	}
	idleLock.Unlock()
	if server == nil {
		var err error
		if server, err = Start(chosen); err != nil {
			tb.Fatal(err)
		}
	} else if err := server.Reset(true); err != nil {
		server.Stop()
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the last lines of the Helenus log:\n%s", server.Log())
		}
		idleLock.Lock()
		defer idleLock.Unlock()
		idle[key] = append(idle[key], server)
	})
	return &Test{server, tb}
}

// Session returns a session of the gocql driver in a keyspace, which it makes where it is missing. The session ends with the test. It
// retries nothing, so that a test sees each refusal.
func (t *Test) Session(keyspace string) *gocql.Session {
	t.tb.Helper()
	cluster, err := t.Cluster()
	t.check(err)
	cluster.RetryPolicy = nil
	first, err := cluster.CreateSession()
	t.check(err)
	defer first.Close()
	const made = `CREATE KEYSPACE IF NOT EXISTS "%s" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`
	t.check(first.Query(fmt.Sprintf(made, keyspace)).Exec())
	cluster.Keyspace = keyspace
	session, err := cluster.CreateSession()
	t.check(err)
	t.tb.Cleanup(session.Close)
	return session
}

// Advance moves the clock ahead. It returns when everything that became due is done.
func (t *Test) Advance(by time.Duration) {
	t.tb.Helper()
	t.check(t.Server.Advance(by))
}

// Faults replaces the fault plan. Without faults, it ends all.
func (t *Test) Faults(faults ...Fault) {
	t.tb.Helper()
	t.check(t.Server.Faults(faults...))
}

// FaultPlan returns the faults in force. Each has the keys of its plan, "holds", "matched" and "hit"; numbers are float64.
func (t *Test) FaultPlan() []Fault {
	t.tb.Helper()
	plan, err := t.Server.FaultPlan()
	t.check(err)
	return plan
}

// Reset empties the server. With keepSchema tables stay, and so do prepared statements.
func (t *Test) Reset(keepSchema bool) {
	t.tb.Helper()
	t.check(t.Server.Reset(keepSchema))
}

// Throttles returns how many statements were refused for want of request units.
func (t *Test) Throttles(session *gocql.Session) int {
	t.tb.Helper()
	rows := session.Query("SELECT * FROM system_cosmos.throttles").Iter()
	count := rows.NumRows()
	t.check(rows.Close())
	return count
}

// Charge returns the request units that the tables of a keyspace were charged. A keyspace without tables ends the test: its charge
// would be 0 for ever.
func (t *Test) Charge(session *gocql.Session, keyspace string) float64 {
	t.tb.Helper()
	sum, err := t.Server.Charge(session, keyspace)
	t.check(err)
	return sum
}

// Charge returns the request units that the tables of a keyspace were charged. It fails for a keyspace without tables.
func (s *Server) Charge(session *gocql.Session, keyspace string) (float64, error) {
	rows := session.Query("SELECT keyspace_name, table_name, request_units FROM system_cosmos.tables").Iter()
	var sum, one float64
	var of, table string
	var known []string
	found := false
	for rows.Scan(&of, &table, &one) {
		known = append(known, of+"."+table)
		if of == keyspace {
			sum, found = sum+one, true
		}
	}
	if err := rows.Close(); err != nil {
		return 0, err
	}
	if !found {
		sort.Strings(known)
		const text = "helenus: there is no table in a keyspace %s, so nothing is charged to it; the tables are: %s"
		return 0, fmt.Errorf(text, keyspace, strings.Join(known, ", "))
	}
	return sum, nil
}

// RequireChargeMax fails the test when work charges the tables of a keyspace more request units than max.
func (t *Test) RequireChargeMax(session *gocql.Session, keyspace string, max float64, work func()) {
	t.tb.Helper()
	before := t.Charge(session, keyspace)
	work()
	if spent := t.Charge(session, keyspace) - before; spent > max {
		t.tb.Fatalf("the charge is %.2f request units, more than %.2f", spent, max)
	}
}

// RequireThrottled fails the test when the server refuses nothing for want of request units.
func (t *Test) RequireThrottled(session *gocql.Session) {
	t.tb.Helper()
	if t.Throttles(session) == 0 {
		t.tb.Fatal("the server throttled no statement")
	}
}

func (t *Test) check(err error) {
	t.tb.Helper()
	if err != nil {
		t.tb.Fatal(err)
	}
}
