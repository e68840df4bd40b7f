import { type ChangedPart, unknownPartsText, variantChangesText } from '../../../record/fingerprint.ts';
import { isOnlyByMcnemar, ofOneCaseText, onlyByMcnemarText } from '../../../stats/compare.ts';
import type { Interval } from '../../../stats/pass-rate.ts';
import type { Noise } from '../../../stats/repeats.ts';
import type { ComparedTrials } from '../../model/compare.ts';
import { line } from '../parts/foreign.ts';
import { plural } from '../parts/quantities.ts';

/** Below this number of cases, an interval says little. */
const fewCases = 10;

interface FindingProps {
  compared: ComparedTrials;
  /** Of the difference's interval. */
  confidence: number;
  /** How many variants the batches have in common. */
  inCommon: number;
  /** What else differs, if both sides are of one variant. */
  variantChanges: readonly ChangedPart[];
  unknownParts: readonly string[];
}

/** Whether B is better or worse than A, or whether that may be noise. */
export function Finding({ compared, confidence, inCommon, variantChanges, unknownParts }: FindingProps) {
  const unknown = unknownPartsText(unknownParts);
  const { rates, noise, finding } = compared;
  const { better, worse, midP } = rates.mcnemar;
  const redefined = compared.cases.filter(({ change }) => change === 'redefined');
  return (
    <section class={`finding ${finding}`} aria-label="Finding">
      <p class="sentence">{sentence(compared)}</p>
      {redefined.length > 0 && (
        <p class="caution">
          Not compared, since A and B ask or check something else: {plural(redefined.length, 'case')}.
        </p>
      )}
      {variantChanges.length > 0 && (
        <p class="caution">B also has another {line(variantChangesText(variantChanges))}.</p>
      )}
      {unknown !== undefined && <p class="caution">{line(unknown)}</p>}
      {isOnlyByMcnemar(rates) && <p class="caution">{onlyByMcnemarText}</p>}
      {finding === 'noise' && (
        <p>
          {rates.interval
            ? `That does not show that they are equal: the true difference may be ${rangeOf(rates.interval)} points.`
            : ofOneCaseText}
        </p>
      )}
      {rates.cases.length > 0 && (
        <p>
          By majority of trials, {plural(worse, 'case')} got worse and {better} better; McNemar's test:{' '}
          {midP < 0.001 ? 'p < 0.001' : `p = ${midP.toFixed(3)}`}.
        </p>
      )}
      {noise.a.repeated + noise.b.repeated > 0 ? (
        <p>{`Cases that flip by themselves, between repeats: A ${flips(noise.a)}, B ${flips(noise.b)}.`}</p>
      ) : (
        <p>No case has repeats, so the noise of a single case is unknown.</p>
      )}
      {rates.cases.length > 0 && rates.cases.length < fewCases && (
        <p class="dim">
          Only {plural(rates.cases.length, 'case')}: other cases of the same kind may give another result.
        </p>
      )}
      {inCommon > 1 && confidence > 0.95 && (
        <p class="dim">
          {inCommon} variants can be compared, so the interval has {Number((confidence * 100).toFixed(2))} %:
          chance finds a difference in one of them in at most 5 of 100 comparisons.
        </p>
      )}
    </section>
  );
}

const flips = ({ flipping, repeated }: Noise) => `${flipping.length} of ${repeated}`;

function sentence({ rates, finding }: ComparedTrials): string {
  const { difference, interval, cases } = rates;
  if (difference === undefined) return 'A and B have no case in common with a verdict on both sides.';
  const over = `over ${plural(cases.length, 'case')}`;
  if (finding === 'noise' || !interval) {
    const range = interval ? ` (${rangeOf(interval)})` : '';
    return `No difference can be told from noise: B − A is ${signed(difference)} points${range}, ${over}.`;
  }
  const [near, far] = finding === 'worse' ? [-interval.high, -interval.low] : [interval.low, interval.high];
  const by = `${points(Math.abs(difference))} points (${points(near)} to ${points(far)})`;
  return `B is ${finding} by ${by}, ${over}.`;
}

const rangeOf = ({ low, high }: Interval) => `${signed(low)} to ${signed(high)}`;

/** Percentage points with a sign: `+3`, `−12`, `0`; one decimal below 10. */
export function signed(difference: number): string {
  const shown = points(Math.abs(difference));
  if (shown === '0') return '0';
  return `${difference < 0 ? '−' : '+'}${shown}`;
}

function points(difference: number): string {
  const value = difference * 100;
  return String(Number(value.toFixed(value < 10 ? 1 : 0)));
}
