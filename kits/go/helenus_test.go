package helenus_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"helenus.dev/helenus"
)

// What a user writes: it moves the clock, meets a fault and a throttle.
func TestCartExpires(t *testing.T) {
	server := helenus.New(t)
	cql := server.Session("shop")
	cql.Query("CREATE TABLE IF NOT EXISTS cart (id int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400").Exec()
	put := func(id int) error { return cql.Query("INSERT INTO cart (id) VALUES (?) USING TTL 60", id).Exec() }
	server.Faults(helenus.Fault{"action": "throttle", "table": "cart", "statement": "write", "count": 1})
	if put(1) == nil || put(1) != nil {
		t.Fatal("the fault is met once")
	}
	if plan := server.FaultPlan(); len(plan) != 1 || plan[0]["matched"] != 2.0 || plan[0]["hit"] != 1.0 {
		t.Fatalf("the plan in force: %v", plan)
	}
	for id := 0; put(id) == nil; id++ {
	}
	server.RequireThrottled(cql)
	server.Advance(time.Minute + time.Second)
	if cql.Query("SELECT * FROM cart").Iter().NumRows() != 0 {
		t.Fatal("a cart is left")
	}
}

func TestChargesAreCounted(t *testing.T) {
	server := helenus.New(t)
	cql := server.Session("charges")
	must(t, cql.Query("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)").Exec())
	before := server.Charge(cql, "charges")
	server.RequireChargeMax(cql, "charges", 100, func() { must(t, cql.Query("INSERT INTO t (k) VALUES (1)").Exec()) })
	if server.Charge(cql, "charges") <= before {
		t.Fatal("the insert has no charge")
	}
	if _, err := server.Server.Charge(cql, "chargse"); err == nil || !strings.Contains(err.Error(), "the tables are: charges.t") {
		t.Fatalf("the charge of an unknown keyspace: %v", err)
	}
}

// Two hundred tests, two at a time, each on a table of the same name.
func TestTestsDoNotInterfere(t *testing.T) {
	var lock sync.Mutex
	servers := map[int]bool{}
	t.Run("group", func(t *testing.T) {
		for number := range 200 {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				t.Parallel()
				server := helenus.New(t)
				lock.Lock()
				servers[server.PID] = true
				lock.Unlock()
				cql := server.Session("same")
				must(t, cql.Query("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)").Exec())
				must(t, cql.Query("INSERT INTO t (k) VALUES (?)", number).Exec())
				var count, found int
				must(t, cql.Query("SELECT count(*), max(k) FROM t").Scan(&count, &found))
				if count != 1 || found != number {
					t.Fatalf("test %d finds %d rows, the last %d", number, count, found)
				}
			})
		}
	})
	if len(servers) != 2 {
		t.Fatalf("two tests at a time (-parallel 2) used %d servers", len(servers))
	}
}

func TestTheServerEndsWithAKilledRunner(t *testing.T) {
	if os.Getenv("HELENUS_KIT_CHILD") != "" {
		fmt.Printf("pid %d\n", helenus.New(t).PID)
		time.Sleep(time.Minute)
	}
	runner := exec.Command(os.Args[0], "-test.run", "^TestTheServerEndsWithAKilledRunner$")
	runner.Env = append(os.Environ(), "HELENUS_KIT_CHILD=1")
	output, err := runner.StdoutPipe()
	must(t, err)
	must(t, runner.Start())
	var pid int
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	_, err = fmt.Sscanf(line, "pid %d", &pid)
	must(t, err)
	must(t, runner.Process.Kill())
	_ = runner.Wait()
	for range 500 {
		if gone(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the server %d is still there", pid)
}

// gone tells whether a process has ended. Where no process reaps it, it stays as a zombie.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

func TestAnotherRecordIsRefused(t *testing.T) {
	program := script(t, `echo '{"api":2}'; cat >/dev/null`)
	if _, err := helenus.Start(helenus.Options{Program: program}); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Fatalf("a record of version 2: %v", err)
	}
}

func TestRefusalsNameTheirCause(t *testing.T) {
	if _, err := helenus.Start(helenus.Options{Program: "/nowhere/helenus"}); err == nil || !strings.Contains(err.Error(), "is not a program") {
		t.Fatalf("no program: %v", err)
	}
	_, err := helenus.Start(helenus.Options{Arguments: []string{"--durability=never"}})
	if err == nil || !strings.Contains(err.Error(), "durability") {
		t.Fatalf("a wrong setting: %v", err)
	}
	err = helenus.New(t).Ask("POST", "/api/clock", map[string]any{"set_ms": 0}, nil)
	if err == nil || !strings.Contains(err.Error(), "409") {
		t.Fatalf("a clock that goes back: %v", err)
	}
}

// A copy that is carried is used when neither argument nor HELENUS_BIN names a program, and before PATH.
func TestACarriedProgramIsExtractedOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HELENUS_BIN", "")
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := helenus.Carry([]byte("#!/bin/sh\necho carried\n")); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	path, err := helenus.FindProgram("")
	must(t, err)
	output, err := exec.Command(path).Output()
	must(t, err)
	if string(output) != "carried\n" {
		t.Fatalf("%s printed %q", path, output)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	must(t, err)
	if len(left) != 1 {
		t.Fatalf("left beside the program: %q", left)
	}
}

func TestCosmosNeedsAnAccount(t *testing.T) {
	server := helenus.New(t, helenus.Options{Cosmos: true})
	must(t, server.Session("shop").Query("CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY)").Exec())
	if server.Account == "" || server.CertificatePEM == "" {
		t.Fatal("the record has no account or certificate")
	}
}

func script(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "helenus")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
