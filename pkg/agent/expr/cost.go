package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Sizes that inputs usually have at most. They decide what is refused at compile
// time; a run with larger ones is bounded by MaxCost.
const (
	usualList   = 200     // work items, tools
	unknownList = 1000    // lists and objects in arguments
	unknownText = 4 << 10 // bytes of a text in arguments
)

// sizes estimates how large the values of an expression are.
type sizes struct {
	env *Env
	// Expressions that a macro walks over: there a value of any type is a list.
	ranges map[int64]bool
}

func newSizes(e *Env, tree *cel.Ast) *sizes {
	s := &sizes{env: e, ranges: map[int64]bool{}}
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() == ast.ComprehensionKind {
			s.ranges[x.AsComprehension().IterRange().ID()] = true
		}
	}))
	return s
}

// EstimateSize implements cost.Estimator.
func (s *sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	switch node.Type().Kind() {
	case types.StringKind, types.BytesKind:
		return upTo(s.text(node.Path()))
	case types.ListKind, types.MapKind:
		if path := node.Path(); len(path) > 0 && path[0] != "args" {
			return upTo(usualList)
		}
		return upTo(unknownList)
	case types.DynKind, types.AnyKind:
		switch {
		case node.Expr() == nil:
			return nil // The library asks whether it may be a list: not known.
		case s.ranges[node.Expr().ID()]:
			return upTo(unknownList)
		}
		return upTo(unknownText)
	}
	return nil
}

// EstimateCallCost implements cost.Estimator: the library knows its functions.
func (s *sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// text is the usual length of a text, in bytes.
func (s *sizes) text(path []string) uint64 {
	if len(path) == 0 {
		return unknownText
	}
	v := s.env.byName[path[0]]
	switch last := path[len(path)-1]; {
	case v == nil:
		return unknownText
	case v.shape == shapeText:
		return v.size
	case v.shape == shapeTexts && last != "@keys":
		return 32 << 10
	case v.shape == shapeDyn:
		return unknownText
	}
	return 256
}

func upTo(size uint64) *cost.SizeEstimate {
	return &cost.SizeEstimate{Min: 0, Max: size}
}

// bounded reports whether an expression costs little whatever its inputs are,
// so that nothing has to be counted while it runs.
func bounded(env *cel.Env, tree *cel.Ast) bool {
	estimate, err := env.EstimateCost(tree, nil)
	return err == nil && estimate.Max <= 10_000
}

// prices are what calls cost when they run, by the sizes of what they were given and
// of what they made: the library does not look behind values of any type. Whatever is
// made counts, so that what an expression holds at once is bounded too.
type prices struct{}

// Bytes of a text that cost one unit, and what an element of a list costs.
const (
	bytesPerUnit    = 10
	unitsPerElement = 1
)

// CallCost implements cost.ActualCostEstimator.
func (prices) CallCost(_, _ string, args []ref.Val, result ref.Val) *uint64 {
	units := 1 + price(result)
	for _, arg := range args {
		units += price(arg)
	}
	return &units
}

// price is what it costs to go through a value once.
func price(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / bytesPerUnit
	case types.Bytes:
		return uint64(len(v)) / bytesPerUnit
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return uint64(n) * unitsPerElement //nolint:gosec // sizes are not negative
		}
	}
	return 0
}
