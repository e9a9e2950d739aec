package server

import (
	"go/ast"
	"path/filepath"
	"testing"
)

// step is one function of a road and what it must call to reach the next one. A name is "package/file.go Func" or
// "package/file.go Type.Func", as ARCHITECTURE.md prints it.
type step struct{ name, calls string }

// produceRoad and fetchRoad are the two roads of the architecture, one function after the other. A step whose callee is reached through
// the handler table or an interface names the method that is called there.
var (
	produceRoad = []step{
		{"server/conn.go conn.readLoop", "readRequest"},
		{"server/frame.go conn.readRequest", "decode"},
		{"server/conn.go conn.readLoop", "begin"},
		{"server/conn.go conn.begin", "start"},
		{"server/conn.go conn.start", "Do"},
		{"server/dispatch.go Server.Do", "handle"},
		{"server/produce.go Server.handleProduce", "prepare"},
		{"server/produce.go publish.prepare", "admit"},
		{"server/produce.go publish.admit", "judge"},
		{"server/inflate.go Server.judge", "Validate"},
		{"server/produce.go publish.admit", "recordIDs"},
		{"server/produce.go Server.handleProduce", "Append"},
		{"replica/append.go Host.Append", "append"},
		{"replica/append.go partition.append", "storeLocked"},
		{"replica/append.go partition.storeLocked", "judgeIDsLocked"},
		{"replica/append.go partition.storeLocked", "appendLocked"},
		{"replica/append.go partition.appendLocked", "AppendIdentified"},
		{"storage/append.go Log.AppendIdentified", "append"},
		{"replica/append.go partition.append", "park"},
		{"replica/produce.go Produce.park", "insert"},
		{"replica/wait.go waitList.insert", ""},
		{"server/conn.go conn.begin", "push"},
		{"server/writer.go writer.step", "settle"},
		{"server/writer.go writer.settle", "Complete"},
		{"server/produce.go publish.Complete", "answer"},
		{"server/writer.go writer.step", "send"},
	}
	fetchRoad = []step{
		{"server/conn.go conn.readLoop", "begin"},
		{"server/conn.go conn.start", "Do"},
		{"server/dispatch.go Server.Do", "handle"},
		{"server/fetch.go Server.handleFetch", "open"},
		{"server/fetch.go Server.handleFetch", "attempt"},
		{"server/fetch.go fetchWork.attempt", "Read"},
		{"replica/read.go Host.Read", "read"},
		{"replica/read.go partition.read", "readLog"},
		{"replica/read.go partition.readLog", "Read"},
		{"storage/read.go Log.Read", ""},
		{"server/fetch.go fetchWork.attempt", "Park"},
		{"replica/park.go Host.Park", "parkFetch"},
		{"replica/park.go partition.parkFetch", "insert"},
		{"replica/wait.go waitList.insert", ""},
		{"server/conn.go conn.begin", "push"},
		{"server/writer.go writer.settle", "Complete"},
		{"server/fetch.go fetchWork.Complete", "attempt"},
		{"server/fetch.go fetchWork.attempt", "answer"},
		{"server/conn.go conn.begin", "answer"},
		{"server/conn.go conn.answer", "send"},
		{"server/writer.go writer.send", "sendFetch"},
		{"server/writer.go writer.sendFetch", "Encode"},
	}
)

// A publish and a fetch can each be read as one road: every function is where the list says, and calls the next.
func TestRoads_ProduceAndFetch(t *testing.T) {
	funcs := map[string]*ast.FuncDecl{}
	for _, pkg := range []string{"server", "replica", "storage"} {
		declarations(t, pkg, funcs)
	}
	for name, road := range map[string][]step{"Produce": produceRoad, "Fetch": fetchRoad} {
		for i, s := range road {
			f := funcs[s.name]
			if f == nil {
				t.Errorf("%s road, step %d: there is no %s", name, i+1, s.name)
				continue
			}
			if s.calls != "" && !callsTo(f, s.calls) {
				t.Errorf("%s road, step %d: %s does not call %s", name, i+1, s.name, s.calls)
			}
		}
	}
}

func declarations(t *testing.T, pkg string, into map[string]*ast.FuncDecl) {
	t.Helper()
	t.Helper()
	for name, file := range parsePackage(t, filepath.Join("..", pkg)) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				into[pkg+"/"+name+" "+receiver(f)+f.Name.Name] = f
			}
		}
	}
}

// receiver returns "Type." for a method.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	e := f.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

func callsTo(f *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.Ident:
			found = found || fun.Name == name
		case *ast.SelectorExpr:
			found = found || fun.Sel.Name == name
		}
		return true
	})
	return found
}
