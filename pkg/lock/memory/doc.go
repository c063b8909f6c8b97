// Package memory keeps locks in the process: the reference of the contract, and a store for tests whose clock and faults are in the test's
// hand. It follows the protocol of package redisnode step by step, so that what is shown with the one holds for the other.
//
// It promises what lock.Backend promises, within one process, and keeps nothing over its end.
package memory
