import { engineCheck } from '../check.ts';

/** The limits that the engine says it can enforce. Without one of these, sandboxes are refused. */
export const engineLimits = engineCheck('limits', async ({ capabilities: { limits, security } }) => {
  const missing = [
    ...(limits.memory ? [] : ['memory']),
    ...(limits.swap ? [] : ['swap']),
    ...(limits.pids ? [] : ['processes']),
    ...(limits.cpu ? [] : ['processors']),
    ...(security.seccomp ? [] : ['system calls (seccomp)']),
  ];
  if (missing.length === 0) {
    return { state: 'ok', found: 'memory, swap, processes, processors, system calls (seccomp)' };
  }
  return {
    state: 'fail',
    kind: 'infrastructure',
    found: `the engine cannot limit ${missing.join(', ')}`,
    mend: 'Enable control groups (for swap: kernel option swapaccount=1) and seccomp, or use another engine.',
  };
});
