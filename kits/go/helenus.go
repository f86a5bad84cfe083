// Package helenus starts Helenus, a server for the Cassandra protocol, in tests, and controls it: its clock, its data, its faults.
//
//	func TestCart(t *testing.T) {
//		server := helenus.New(t)
//		cql := server.Session("shop")
//		…
//		server.Advance(time.Hour)
//	}
//
// The server is a child process that keeps its data in memory. It ends when the test process ends, however that ends: the child reads its
// standard input, which the test process holds open.
package helenus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	// API is the version of the server's record that this package reads.
	API = 1
	// logLinesMax bounds the lines of the server's log that are kept.
	logLinesMax = 50
	// adminTimeMax bounds a request to the admin port.
	adminTimeMax = 30 * time.Second
)

// Options of a server. The zero value is a plain Cassandra in memory. Servers with equal options serve any test that asks for these.
type Options struct {
	// Program is the path of the program. Empty: HELENUS_BIN, else a carried copy (see Carry), else `helenus` in PATH.
	Program string
	// Cosmos serves as Azure Cosmos DB for Apache Cassandra does, with TLS and an account.
	Cosmos bool
	// Nodes is the number of virtual nodes; 0 means the server's default.
	Nodes int
	// Arguments are passed on: "--scale-limits=1/1000".
	Arguments []string
}

// Record is what a server tells when it is ready.
type Record struct {
	API            int    `json:"api"`
	CQL            string `json:"cql"`
	TLS            string `json:"tls"`
	Admin          string `json:"admin"`
	Token          string `json:"token"`
	Account        string `json:"account"`
	Key            string `json:"key"`
	CertificatePEM string `json:"certificate_pem"`
	PID            int    `json:"pid"`
}

// Fault is one fault of a plan: {"action": "throttle", "table": "t", "count": 1}.
type Fault map[string]any

// Server is a running server.
type Server struct {
	Record
	child *exec.Cmd
	stdin io.Closer
	log   *lines
}

// Start starts a server on free ports and waits until it answers. Tests use New.
func Start(options Options) (*Server, error) {
	program, err := FindProgram(options.Program)
	if err != nil {
		return nil, err
	}
	arguments := []string{"serve", "--data", "memory:", "--ready-json", "-", "--exit-with-stdin",
		"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}
	if options.Cosmos {
		arguments = append(arguments, "--profile", "cosmos", "--tls-listen", "127.0.0.1:0")
	}
	if options.Nodes > 0 {
		arguments = append(arguments, "--nodes", strconv.Itoa(options.Nodes))
	}
	server := &Server{child: exec.Command(program, append(arguments, options.Arguments...)...), log: &lines{}}
	server.child.Stderr = server.log
	if server.stdin, err = server.child.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := server.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.child.Start(); err != nil {
		return nil, fmt.Errorf("helenus: %s does not start: %w", program, err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		server.Stop()
		return nil, fmt.Errorf("helenus: the server does not start:\n%s", server.Log())
	}
	if err := json.Unmarshal(line, &server.Record); err != nil {
		server.Stop()
		return nil, fmt.Errorf("helenus: the server's record %q: %w", line, err)
	}
	if server.API != API {
		server.Stop()
		return nil, fmt.Errorf("helenus: the server's record has version %d; this package reads %d", server.API, API)
	}
	return server, nil
}

// Stop ends the server and waits for its end.
func (s *Server) Stop() {
	s.stdin.Close()
	_ = s.child.Wait()
}

// Log returns the last lines of the server's log.
func (s *Server) Log() string { return s.log.String() }

// Cluster returns settings of the gocql driver that reach the server. The caller may change them.
func (s *Server) Cluster() (*gocql.ClusterConfig, error) {
	host, port, err := net.SplitHostPort(s.CQL)
	if err != nil {
		return nil, err
	}
	cluster := gocql.NewCluster(host)
	if cluster.Port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	if s.Account != "" {
		cluster.Authenticator = gocql.PasswordAuthenticator{Username: s.Account, Password: s.Key}
	}
	cluster.Timeout = adminTimeMax
	cluster.ConnectTimeout = adminTimeMax
	return cluster, nil
}

// Advance moves the clock ahead. It returns when everything that became due is done.
func (s *Server) Advance(by time.Duration) error {
	return s.Ask(http.MethodPost, "/api/clock", map[string]any{"advance_ms": by.Milliseconds()}, nil)
}

// Reset empties the server. With keepSchema tables stay, and so do prepared statements.
func (s *Server) Reset(keepSchema bool) error {
	body := map[string]any{}
	if keepSchema {
		body["keep"] = "schema"
	}
	return s.Ask(http.MethodPost, "/api/reset", body, nil)
}

// Faults replaces the fault plan. Without faults, it ends all.
func (s *Server) Faults(faults ...Fault) error {
	if len(faults) == 0 {
		return s.Ask(http.MethodDelete, "/api/faults", nil, nil)
	}
	return s.Ask(http.MethodPost, "/api/faults", map[string]any{"seed": 1, "fault": faults}, nil)
}

// FaultPlan returns the faults in force. Each has the keys of its plan, "holds", "matched" and "hit"; numbers are float64.
func (s *Server) FaultPlan() ([]Fault, error) {
	var plan struct {
		Faults []Fault `json:"fault"`
	}
	err := s.Ask(http.MethodGet, "/api/faults", nil, &plan)
	return plan.Faults, err
}

// Ask sends a request to the admin port. answer may be nil.
func (s *Server) Ask(method, path string, body, answer any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, "http://"+s.Admin+path, &sent)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Timeout: adminTimeMax}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("helenus: %s %s: %d %s", method, path, response.StatusCode, bytes.TrimSpace(text))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// lines keeps the last lines that were written.
type lines struct {
	lock sync.Mutex
	kept []string
	rest string
}

func (l *lines) Write(text []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	parts := strings.Split(l.rest+string(text), "\n")
	l.rest = parts[len(parts)-1]
	l.kept = append(l.kept, parts[:len(parts)-1]...)
	if over := len(l.kept) - logLinesMax; over > 0 {
		l.kept = append([]string(nil), l.kept[over:]...)
	}
	return len(text), nil
}

func (l *lines) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return strings.Join(append(append([]string(nil), l.kept...), l.rest), "\n")
}
