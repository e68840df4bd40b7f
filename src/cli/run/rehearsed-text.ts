import type { SuitePlan } from '../../suite/plan.ts';
import { plural } from '../../text/quantities.ts';
import type { AnySummary } from '../results/write-results.ts';

/** What a dry run has shown. Failed trials are no finding, because no model did the work. */
export function rehearsedText(
  { passed, failed, void: missing }: AnySummary,
  { variants, judges }: SuitePlan,
): string {
  const graded = `${plural(passed + failed, 'trial')} went through sandbox, prepare, harness and grading`;
  const expected = failed > 0 ? ', so trials are expected to fail' : '';
  const without = missing > 0 ? `; ${plural(missing, 'trial')} got no verdict, for the causes above` : '';
  const models = variants.some(({ modelConfig }) => modelConfig !== undefined)
    ? `. No model did any work${expected}.`
    : '';
  const asked =
    judges.length > 0
      ? ' Judges that were asked gave full marks; what a validator asks after a check that failed was not tried.'
      : '';
  return `rehearsed: ${graded}${without}${models}${asked}`;
}
