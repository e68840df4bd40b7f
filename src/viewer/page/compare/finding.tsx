import { type ChangedPart, unknownPartsText, variantChangesText } from '../../../record/fingerprint.ts';
import type { Noise } from '../../../stats/repeats.ts';
import { explainedTexts, fewCasesTexts, findingText, shownP } from '../../../text/finding.ts';
import type { ComparedTrials } from '../../model/compare.ts';
import { line } from '../parts/foreign.ts';
import { plural } from '../parts/quantities.ts';

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
  const found = { finding, value: rates.difference, ...rates.interval, cases: rates.cases.length };
  const redefined = compared.cases.filter(({ change }) => change === 'redefined');
  return (
    <section class={`finding ${finding}`} aria-label="Finding">
      <p class="sentence">{findingText(found)}</p>
      {redefined.length > 0 && (
        <p class="caution">
          Not compared, since A and B ask or check something else: {plural(redefined.length, 'case')}.
        </p>
      )}
      {variantChanges.length > 0 && (
        <p class="caution">B also has another {line(variantChangesText(variantChanges))}.</p>
      )}
      {unknown !== undefined && <p class="caution">{line(unknown)}</p>}
      {explainedTexts(found, rates.mcnemar).map((text) => (
        <p key={text}>{text}</p>
      ))}
      {rates.cases.length > 0 && (
        <p>
          By majority of trials, {plural(worse, 'case')} got worse and {better} better; McNemar's test of
          these (the interval decides): {shownP(midP)}.
        </p>
      )}
      {noise.a.repeated + noise.b.repeated > 0 ? (
        <p>{`Cases that flip by themselves, between repeats: A ${flips(noise.a)}, B ${flips(noise.b)}.`}</p>
      ) : (
        <p>No case has repeats, so the noise of a single case is unknown.</p>
      )}
      {fewCasesTexts(found).map((text) => (
        <p key={text} class="dim">
          {text}
        </p>
      ))}
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
