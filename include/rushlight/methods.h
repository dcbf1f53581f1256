// Operators as methods of Tensor, one line each by hand: included inside the class by tensor.h. Their bodies, in
// ops.h, call the operator; tests/python/test_methods.py holds this list against the registry.
