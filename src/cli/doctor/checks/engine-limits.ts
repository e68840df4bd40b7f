import { engineCheck } from '../check.ts';

const usual =
  'Enable control groups (for swap: kernel option swapaccount=1) and seccomp, or use another engine.';
const ofRootless =
  'A rootless engine has limits where the machine has control groups of version 2, and systemd delegates cpu, ' +
  'memory and pids to users (https://rootlesscontaine.rs/getting-started/common/cgroup2/). Or use another engine.';

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
    fix: security.rootless ? ofRootless : usual,
  };
});
