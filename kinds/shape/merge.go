package shape

// ensure returns *p, which it allocates first if *p is nil.
func ensure[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// merge adds the statistics of m to n.
func (n *node) merge(m *node) {
	n.nulls += m.nulls
	n.yes += m.yes
	n.no += m.no
	if m.text != nil {
		ensure(&n.text).merge(m.text)
	}
	if m.number != nil {
		ensure(&n.number).merge(m.number)
	}
	if m.array != nil {
		if n.array == nil {
			n.array = &arrays{lengths: lengths{lo: m.array.lo}}
		}
		n.array.merge(m.array)
	}
	if m.object != nil {
		if n.object == nil {
			n.object = &objects{lengths: lengths{lo: m.object.lo}}
		}
		n.object.merge(m.object)
	}
}

func (l *lengths) mergeLengths(m lengths) {
	l.complete += m.complete
	l.total += m.total
	l.lo, l.hi = min(l.lo, m.lo), max(l.hi, m.hi)
}

func (a *arrays) merge(b *arrays) {
	a.mergeLengths(b.lengths)
	a.elem.merge(&b.elem)
}

func (o *objects) merge(p *objects) {
	o.n += p.n
	o.mergeLengths(p.lengths)
	if p.each != nil || o.each != nil || len(o.fields)+len(p.fields) > 2*fieldsMost {
		o.toMap()
		p.toMap()
		o.each.merge(p.each)
		return
	}
	for _, d := range p.fields {
		i := o.find([]byte(d.name))
		if i < 0 {
			o.index = nil
			o.fields = append(o.fields, &field{name: d.name, first: d.first, last: -1})
			i = len(o.fields) - 1
		}
		o.fields[i].n += d.n
		if d.first >= 0 && d.first < o.fields[i].first {
			o.fields[i].first = d.first
		}
		o.fields[i].node.merge(&d.node)
	}
	if len(o.fields) > fieldsMost {
		o.toMap()
	}
}

// toMap turns o into a map: it merges the values of all fields into one node.
func (o *objects) toMap() {
	if o.each != nil {
		return
	}
	o.each = &node{}
	for _, d := range o.fields {
		if o.example == "" {
			o.example = d.name
		}
		o.each.merge(&d.node)
	}
	o.fields, o.index = nil, nil
}
