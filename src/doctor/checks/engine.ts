import { type Capabilities, otherPlainRuntime, plainRuntimes } from '../../engine/port/capabilities.ts';
import { duration } from '../../text/quantities.ts';
import { type Check, engineCheck } from '../check.ts';
import { failureOf } from '../examine.ts';
import { usedRuntimes } from '../runtimes.ts';

/** Whether the engine can be reached and is new enough: connecting refuses an old engine. */
export const engineReachable: Check = {
  name: 'engine',
  ofEngine: true,
  async run({ engine }) {
    if (!engine.got) return failureOf(engine.error);
    const { address, capabilities } = engine.value;
    const { serverVersion, apiVersion, os } = capabilities;
    const found = `${address}, version ${serverVersion}, API ${apiVersion}`;
    if (os === 'linux') return { state: 'ok', found };
    const fix = 'Switch it to Linux containers, or name another engine by DOCKER_HOST.';
    return { state: 'fail', kind: 'infrastructure', found: `${found}: it runs ${os} containers`, fix };
  },
};

/** The runtime of sandboxes that name none, and what follows from it. */
export const engineRuntime = engineCheck('runtime', async ({ capabilities }, { config }) => {
  const { defaultRuntime, runtimes } = capabilities;
  if (!plainRuntimes.includes(defaultRuntime)) {
    const used = usedRuntimes(config.sandboxes, defaultRuntime).find(({ runtime }) => runtime === undefined);
    if (used === undefined) return { state: 'ok', found: `${defaultRuntime}, which no sandbox uses` };
    const found = `${defaultRuntime}, which may not apply the filter of system calls: runc and crun do`;
    // Another check says what such sandboxes lack.
    if (used.mayLackFilter) return { state: 'ok', found };
    return {
      state: 'warn',
      found,
      fix: `Sandboxes need ${waysOut(capabilities)}. docs/engines.md says what else follows.`,
    };
  }
  if (defaultRuntime === 'crun' || !runtimes.includes('crun')) return { state: 'ok', found: defaultRuntime };
  // Measured with Docker 20.10, runc 1.1.5 and crun 1.8.1: docs/engines.md.
  const found = `${defaultRuntime}; crun is there too, and makes a trial a tenth to a fifth faster`;
  return { state: 'ok', found: `${found}: "default-runtime": "crun" in the engine's daemon.json` };
});

function waysOut(capabilities: Capabilities): string {
  const plain = otherPlainRuntime(capabilities);
  const otherRuntime = plain === undefined ? '' : `runtime: ${plain}, which the engine has too, or `;
  return `${otherRuntime}seccomp: if-available`;
}

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

/**
 * Milliseconds. The times of commands come from the engine's clock, all others from ours. A difference below
 * one second does not matter.
 */
const tolerated = 1_000;

export const engineClock = engineCheck("engine's clock", async ({ capabilities: { clockAheadMs } }) => {
  const apart = Math.abs(clockAheadMs);
  const found = `${duration(apart)} ${clockAheadMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (apart <= tolerated) return { state: 'ok', found };
  const fix =
    'Set both clocks by NTP, else the times of commands are wrong. A machine that slept is often behind.';
  return { state: 'warn', found, fix };
});
