package entries

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
)

// Step is what an order asks for.
type Step string

// The steps.
const (
	Planning  Step = "plan"      // a survey and a plan together
	Directory Step = "directory" // notes on directories
	Reporting Step = "report"
)

// Lease is how long an order belongs to its taker.
const Lease = 30 * time.Minute

// Order is one piece of work that was given out.
type Order struct {
	ID       string          `json:"order"` // 12 characters, without the prefix
	Step     Step            `json:"step"`
	Dirs     []plan.Assigned `json:"dirs,omitempty"`
	IssuedAt time.Time       `json:"issued_at"`
	Process  string          `json:"process"`
	Open     []string        `json:"open,omitempty"`     // directories that a note has not covered yet
	Answered *time.Time      `json:"answered,omitempty"` // by a whole note
	Prints   []string        `json:"prints,omitempty"`   // fingerprints of Dirs when it was given out
	Turns    int             `json:"turns,omitempty"`    // that were used
}

// Name returns the handle of the order.
func (o *Order) Name() string { return OrderPrefix + o.ID }

// Order returns an order that was given out; ok is false if there is none of that ID.
func (i *Investigation) Order(id string) (o Order, ok bool, err error) {
	ok, err = i.Read(ordersDir+"/"+id+".json", &o)
	return o, ok && o.ID == id, err
}

// PutOrder writes an order.
func (i *Investigation) PutOrder(o Order) error { return i.Write(ordersDir+"/"+o.ID+".json", o) }

// NewOrder makes an order that this process gives out now.
func (i *Investigation) NewOrder(step Step, dirs []plan.Assigned, prints []string) (Order, error) {
	proc, err := i.store.records.Process()
	if err != nil {
		return Order{}, explain(err)
	}
	o := Order{
		ID: string(observations.RandomID()), Step: step, Dirs: dirs, Prints: prints, IssuedAt: i.store.now().UTC(),
		Process: proc,
	}
	for _, d := range dirs {
		o.Open = append(o.Open, d.Path)
	}
	return o, i.PutOrder(o)
}

// Orders returns all orders, the oldest first.
func (i *Investigation) Orders() ([]Order, error) {
	list, err := i.list(ordersDir)
	if err != nil {
		return nil, err
	}
	var all []Order
	for _, r := range list {
		var o Order
		if json.Unmarshal(r.Body, &o) == nil && o.ID+".json" == path.Base(r.Name) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b Order) int { return a.IssuedAt.Compare(b.IssuedAt) })
	return all, nil
}

// Has reports whether a directory is one of the order's.
func (o *Order) Has(dir string) bool { return o.index(dir) >= 0 }

// Print returns the fingerprint of a directory when the order was given out; "" if it is not one of the order's.
func (o *Order) Print(dir string) string {
	if i := o.index(dir); i >= 0 && i < len(o.Prints) {
		return o.Prints[i]
	}
	return ""
}

func (o *Order) index(dir string) int {
	return slices.IndexFunc(o.Dirs, func(d plan.Assigned) bool { return d.Path == dir })
}

// Leased reports whether an order still belongs to its taker: it is not answered, its process lives, and it was given
// out within the last 30 minutes, or the next ones after the clock was set back.
func (i *Investigation) Leased(o Order) bool {
	return o.Answered == nil && i.store.now().Sub(o.IssuedAt).Abs() < Lease && i.store.records.Alive(o.Process)
}

// Own reports whether this process gave out an order.
func (i *Investigation) Own(o Order) bool {
	own, err := i.store.records.Process()
	return err == nil && o.Process == own
}

// ParseOrder returns the ID of an order's name.
func ParseOrder(name string) (string, error) {
	id, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(name)), OrderPrefix)
	parsed, err := observations.ParseID(observations.Prefix + id)
	if !ok || err != nil {
		return "", errors.New("order: an order is ord: and 12 characters, as an answer of investigate named it")
	}
	return string(parsed), nil
}

// FindOrder returns the investigation of an identity that gave out an order; ErrUnknown if there is none.
func (s *Store) FindOrder(identity, order string) (*Investigation, error) {
	found, err := s.records.List(key(identity, ""), "*/"+ordersDir+"/"+order+".json", false)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		id, _, _ := strings.Cut(r.Name, "/")
		if i, err := s.Get(identity, id); err == nil {
			return i, nil
		}
	}
	return nil, ErrUnknown
}
