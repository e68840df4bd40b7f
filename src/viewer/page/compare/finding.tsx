import { type BriefComparison, trialsOfSides } from '../../../comparison/compare-sides.ts';
import { unknownPartsText, variantChangesText } from '../../../record/fingerprint.ts';
import type { Noise } from '../../../stats/repeats.ts';
import { explainedTexts, fewCasesTexts, findingText, shownP, tooFewTexts } from '../../../text/finding.ts';
import { line } from '../parts/foreign.ts';
import { plural } from '../parts/quantities.ts';

interface FindingProps {
  compared: BriefComparison;
  /** How many variants the batches have in common. */
  inCommon: number;
}

/** Whether B is better or worse than A, or whether that may be noise. */
export function Finding({ compared, inCommon }: FindingProps) {
  const { a, b, difference, mcnemar, redefined = [], variantChanges = [], unknownParts = [] } = compared;
  const { finding, confidence } = difference;
  const unknown = unknownPartsText(unknownParts);
  return (
    <section class={`finding ${finding}`} aria-label="Finding">
      <p class="sentence">{findingText(difference)}</p>
      {tooFewTexts(difference, trialsOfSides(compared)).map((text) => (
        <p key={text}>{text}</p>
      ))}
      {redefined.length > 0 && (
        <p class="caution">
          Not compared, since not all trials ask and check the same: {plural(redefined.length, 'case')}.
        </p>
      )}
      {variantChanges.length > 0 && (
        <p class="caution">B also has another {line(variantChangesText(variantChanges))}.</p>
      )}
      {unknown !== undefined && <p class="caution">{line(unknown)}</p>}
      {explainedTexts(difference, mcnemar).map((text) => (
        <p key={text}>{text}</p>
      ))}
      {difference.cases > 0 && (
        <p>
          By majority of trials, {plural(mcnemar.worse, 'case')} got worse and {mcnemar.better} better;
          McNemar's test of these (the interval decides): {shownP(mcnemar.midP)}.
        </p>
      )}
      {a.noise.repeated + b.noise.repeated > 0 ? (
        <p>{`Cases that flip by themselves, between repeats: A ${flips(a.noise)}, B ${flips(b.noise)}.`}</p>
      ) : (
        <p>No case has repeats, so the noise of a single case is unknown.</p>
      )}
      {fewCasesTexts(difference).map((text) => (
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
