import type { Costs, Distribution } from '../../contract/record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { median } from '../../stats/pass-rate.ts';

type Component = NonNullable<Costs['components']>[number];

/**
 * The cost of reported trials, if they reported it; undefined if none did. It is an estimate (the reporter's
 * prices times its tokens), not a bill. `incomplete` if an ended trial did not report its cost.
 */
export function reportedCosts(ended: readonly Pick<EndedTrial, 'costUsd'>[]): Costs | undefined {
  const known = ended.flatMap(({ costUsd }) => costUsd ?? []);
  const usd = sumOf(known);
  if (known.length === 0 || usd === undefined) return undefined;
  const explanation = 'usage.costUsd of the reported trials';
  const agent = { classification: 'estimated', component: 'agent', source: 'reported', explanation, usd };
  return costsOf([agent], known.length < ended.length);
}

/**
 * The cost of a trial that the platform ran: a component for each role and model that was used. It is the
 * tokens that the gateway counted, times the configured prices. So it is an estimate: what was paid is not
 * known. A model without prices has no component and makes the costs `incomplete`, and so does traffic that
 * could bypass the gateway. Undefined if nothing was measured.
 */
export function modelCosts({
  models,
  modelUnmeasured,
}: Pick<TrialRecord, 'models' | 'modelUnmeasured'>): Costs | undefined {
  const used = models?.usage ?? [];
  if (modelUnmeasured && used.length === 0) return undefined;
  const components = used.flatMap(({ role, usage, pricesOf, ...detail }): Component[] => {
    const { costUsd, ...tokens } = usage;
    if (costUsd === undefined) return [];
    const explanation =
      pricesOf === undefined ? 'tokens times prices' : `tokens times the prices of ${pricesOf}`;
    return [
      {
        classification: 'estimated',
        component: role,
        detail: { ...detail, ...tokens },
        explanation,
        source: 'gateway',
        usd: costUsd,
      },
    ];
  });
  return costsOf(components, modelUnmeasured || components.length < used.length);
}

/**
 * The costs of a run of the platform: the components of its ended trials, summed up by role, model and
 * prices. Undefined if no trial has costs.
 */
export function sumOfCosts(trials: readonly (Costs | undefined)[]): Costs | undefined {
  const known = trials.filter((costs) => costs !== undefined);
  if (known.length === 0) return undefined;
  const alike = Map.groupBy(
    known.flatMap(({ components = [] }) => components),
    ({ classification, component, source, explanation, detail }) =>
      JSON.stringify([classification, component, source, explanation, detail?.model]),
  );
  const components = [...alike.values()].flatMap((group): Component[] => {
    const [first] = group;
    const usd = sumOf(group.map((one) => one.usd));
    if (!first || usd === undefined) return [];
    return [{ ...first, detail: { model: first.detail?.model, trials: group.length }, usd }];
  });
  const incomplete = known.length < trials.length || known.some((costs) => costs.incomplete);
  return costsOf(components, incomplete || components.length < alike.size);
}

function costsOf(components: Component[], incomplete: boolean): Costs {
  const usd = sumOf(components.map((component) => component.usd));
  // Without a component the sum is known only if nothing is missing.
  const isKnown = usd !== undefined && (components.length > 0 || !incomplete);
  return { ...(isKnown && { estimatedEquivalentUsd: usd }), incomplete, components };
}

/** Undefined if the sum leaves the range that JSON can express. */
function sumOf(numbers: readonly number[]): number | undefined {
  const sum = numbers.reduce((total, one) => total + one, 0);
  return Number.isFinite(sum) ? sum : undefined;
}

/** What the sums over a run's trials need from one ended trial. A missing number was not measured. */
export interface EndedTrial {
  verdict: 'passed' | 'failed' | 'void';
  commands?: number | undefined;
  costUsd?: number | undefined;
  /** Epoch milliseconds. */
  endedAt: number;
}

/**
 * The distribution of `trials` planned trials, of which `ended` have ended. Void trials count separately from
 * failed ones. The pass rate and the numbers of commands cover only the scored trials; each is left out if it
 * has no values. `deterministic` is left out if fewer than two trials are scored.
 */
export function distributionOf(trials: number, ended: EndedTrial[]): Distribution {
  const passed = ended.filter(({ verdict }) => verdict === 'passed').length;
  const failed = ended.filter(({ verdict }) => verdict === 'failed').length;
  const scored = passed + failed;
  const commands = ended.flatMap(({ verdict, commands }) => (verdict === 'void' ? [] : (commands ?? [])));
  return {
    trials,
    scored,
    passed,
    failed,
    voided: ended.length - scored,
    ...(scored > 0 && { passRate: passed / scored }),
    ...(commands.length > 0 && {
      commandMin: Math.min(...commands),
      commandMedian: median(commands),
      commandMax: Math.max(...commands),
    }),
    ...(scored > 1 && { deterministic: passed === scored || failed === scored }),
  };
}
