package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Usual maximum sizes of inputs. They decide which expressions Compile rejects; maxCost
// bounds an evaluation with larger inputs.
const (
	usualList   = 200     // work items, tools
	unknownList = 1000    // lists and objects in arguments
	unknownText = 4 << 10 // bytes of a text in arguments
)

// sizes estimates how large the values of an expression are.
type sizes struct {
	env *Env
	// ranges has the expressions that a macro iterates over: a dynamic value there is a
	// list.
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
			return nil // the library asks whether it may be a list, which is unknown
		case s.ranges[node.Expr().ID()]:
			return upTo(unknownList)
		}
		return upTo(unknownText)
	}
	return nil
}

// EstimateCallCost implements cost.Estimator. The library knows its own functions.
func (s *sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// text returns the usual maximum length of a text, in bytes.
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

// isCheap reports whether an expression is cheap for all inputs, so its evaluation needs
// no cost tracking.
func isCheap(env *cel.Env, tree *cel.Ast) bool {
	estimate, err := env.EstimateCost(tree, nil)
	return err == nil && estimate.Max <= 10_000
}

// prices computes the cost of calls during an evaluation from the sizes of their
// arguments and results, because the library does not measure dynamic values. Results
// count, so the memory of an evaluation is bounded too.
type prices struct{}

// Bytes of text for one unit of cost, and the cost of a list element.
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

// price returns the cost of reading a value once.
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
