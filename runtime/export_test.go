package runtime

// TapeExecutor is that of package runtime/gorgonia, which imports this one.
var TapeExecutor func(*Program) (Executor, error)

type namedExecutor struct {
	name string
	make func(*Program) (Executor, error)
}

func (e namedExecutor) String() string { return e.name }

// executors are those that must agree.
func executors() []namedExecutor { return []namedExecutor{{"arena", nil}, {"tape", TapeExecutor}} }
