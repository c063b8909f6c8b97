// Package controllers brings DistributedLocks and the pods that want them together. It knows
// Kubernetes; of locks it knows what a keeper tells, and of Redis nothing.
//
// One pass over one lock is observe -> plan.Decide -> act -> report:
//
//	API cache, keeper ──observe──▶ plan.Snapshot ──Decide──▶ plan.Decision
//	        ▲                                                     │
//	        │                                                    act   one effect at most
//	        │                                                     │
//	        └──── next event ◀── status, then Events ◀──report────┘
//
// Every replica runs the passes and keeps the grants that a status names; only the one that holds
// conch's own Lease decides, and it is asked again right before each write.
//
// A pass never waits for the store. It reads what the keeper knows and gives orders that return at
// once; news from the keeper comes back through the work queue.
package controllers
