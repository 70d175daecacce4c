package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// order returns the units in the order of work. leaf-first goes by depth, priority-first by tier; in both, the units of
// child directories come before those of their parents, and more valuable ones first among equals.
func (a *applier) order() []Unit {
	units := a.limited()
	slices.SortStableFunc(units, func(x, y Unit) int {
		depths := cmp.Compare(depth(y.Top()), depth(x.Top()))
		if a.plan.Order == PriorityFirst {
			depths = cmp.Compare(band(x.Tier), band(y.Tier))
		}
		return cmp.Or(depths, cmp.Compare(y.value, x.value), cmp.Compare(x.Top(), y.Top()))
	})
	at := map[string]int{} // the unit of each directory
	for i, u := range units {
		for _, d := range u.Dirs {
			at[d.Path] = i
		}
	}
	before := make([][]int, len(units)) // units of child directories, in the order above
	for i := range units {
		for _, d := range units[i].Dirs {
			for dir := d.Path; dir != "."; { // the nearest directory above that has a unit waits for this one
				dir = path.Dir(dir)
				if parent, ok := at[dir]; ok {
					if parent != i {
						before[parent] = append(before[parent], i)
					}
					break
				}
			}
		}
	}
	ordered, seen := make([]Unit, 0, len(units)), make([]bool, len(units))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		slices.Sort(before[i])
		for _, child := range before[i] {
			visit(child)
		}
		ordered = append(ordered, units[i])
	}
	for i := range units {
		visit(i)
	}
	return ordered
}

// limited returns the units for which max_orders leaves room: the tree's own directory, priority directories and the
// most valuable others. The directories of the rest keep their mechanical notes.
func (a *applier) limited() []Unit {
	n := a.plan.MaxOrders
	if n == 0 || len(a.units) <= n {
		return a.units
	}
	slices.SortStableFunc(a.units, func(x, y Unit) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.value, x.value))
	})
	for _, u := range a.units[n:] {
		for _, d := range u.Dirs {
			a.out.Dropped = append(a.out.Dropped, d.Path)
		}
	}
	return a.units[:n]
}

// rank orders units by what max_orders keeps first.
func (u *Unit) rank() int {
	if slices.ContainsFunc(u.Dirs, func(d Assigned) bool { return d.Path == "." }) {
		return 0
	}
	return 1 + band(u.Tier)
}

func band(t Tier) int { return slices.Index([]Tier{Priority, Default, Shallow}, t) }

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}
