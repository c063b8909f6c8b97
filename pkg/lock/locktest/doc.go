// Package locktest is what every backend must do, as tests, and a backend that goes wrong on purpose.
//
// A backend's own tests call Run with a way to make an empty store. Each clause of the contract is one subtest, named by a sentence.
package locktest
