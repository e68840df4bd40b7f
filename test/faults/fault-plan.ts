import { noEnvironment } from '../../src/suite/environment.ts';
import { freshVerify, profileOf, type SuitePlan } from '../../src/suite/plan.ts';
import { SandboxConfig } from '../../src/suite/sandbox-config.ts';

/** Cases of a batch of a set. */
export const batchCases = 2;

/** The fault plan with so many cases: `quick`, `quick-1` and so on. */
export function planOf(count: number): SuitePlan {
  const cases = Array.from({ length: count }, (_, index) => (index === 0 ? 'quick' : `quick-${index}`));
  return {
    ...faultPlan,
    cases: cases.flatMap((id) =>
      faultPlan.cases.map((planned) => ({ ...planned, request: { ...planned.request, id } })),
    ),
  };
}

/** The quickest real trials there are: one case, two trials of `true`. */
export const faultPlan: SuitePlan = {
  file: 'faults',
  suite: { id: 'faults', name: 'Faults', prompt: { kind: 'text', text: 'nothing' } },
  trials: 2,
  cases: [
    {
      request: { id: 'quick', name: 'Quick', verify: 'true' },
      local: {
        environment: noEnvironment,
        artifacts: [],
        protected: [],
        runsIn: 'same',
        verifyPlace: freshVerify,
        onError: 'void',
        userTurns: 1,
        solution: undefined,
      },
    },
  ],
  variants: [
    {
      name: 'true',
      model: 'none',
      modelConfig: undefined,
      harness: 'command',
      userModel: undefined,
      profile: profileOf({ name: 'true', run: 'true' }),
      sandbox: { name: 'local', ...SandboxConfig.parse({ memory: '128m', cpus: 0.5 }) },
      credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' },
    },
  ],
  judges: [],
};
