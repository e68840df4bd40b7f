import type { Capabilities } from '../../../engine/port/capabilities.ts';
import { otherPlainRuntime, plainRuntimes } from '../../../engine/port/plain-runtimes.ts';
import { engineCheck } from '../check.ts';
import { usedRuntimes } from '../runtimes.ts';

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
