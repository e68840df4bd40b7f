import { findReasonLine, reachesThreshold } from '../../../record/failures.ts';
import { commandsOf } from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { usageOf } from '../../../record/usage.ts';
import { explain } from '../../model/explain.ts';
import type { TrialRow } from '../../model/shapes.ts';
import { line, lines } from '../parts/foreign.ts';
import { cost, count, duration } from '../parts/quantities.ts';
import { AuditChip, Verdict } from '../parts/verdict.tsx';
import { useRecord } from './record-context.ts';

/** Reasons that are shown here; the tab Checks has all. */
const reasonsShown = 3;
/** Lines of output that are shown beside the reason. */
const linesShown = 12;

/** The verdict, whose fault it is and why, with the output that says so. */
export function Why({ attempts, audit }: { attempts: number } & Pick<TrialRow, 'audit'>) {
  const { record } = useRecord();
  const { fault, reasons } = explain(record);
  const said = excerptOf(record);
  // Many outputs are one line, which is the reason itself.
  const excerpt = reasons.some((reason) => said && reason.includes(said.text.trim())) ? undefined : said;
  const usage = usageOf(record);
  return (
    <section class={`why ${record.verdict} ${excerpt ? 'with-excerpt' : ''}`} aria-label="Verdict">
      <div class="because">
        <p class="fault">
          <Verdict standing={record.verdict} />
          <AuditChip audit={audit} />
          {record.cause && <span class="tag">{record.cause.kind}</span>}
          {fault !== undefined && <span>{fault}</span>}
        </p>
        {reasons.length > 0 && (
          <ul class="reasons">
            {reasons.slice(0, reasonsShown).map((reason) => (
              <li key={reason}>{line(withoutSaid(reason, excerpt?.text))}</li>
            ))}
            {reasons.length > reasonsShown && <li class="dim">and {reasons.length - reasonsShown} more</li>}
          </ul>
        )}
        <dl class="figures">
          <Figure name="Time" value={duration(record.finishedAt - record.startedAt)} />
          {usage?.totalTokens !== 0 && (
            <>
              <Figure name="Tokens" value={count(usage?.totalTokens)} />
              <Figure name="From cache" value={count(usage?.cacheReadTokens)} />
              <Figure name="Cost" value={cost(usage?.costUsd)} />
            </>
          )}
          <Figure name="Commands" value={count(commandsOf(record)?.length)} />
          <Figure name="Attempts" value={count(attempts)} />
        </dl>
      </div>
      {excerpt && (
        <div class="excerpt">
          <p class="dim">{excerpt.label}</p>
          <pre role="region" aria-label={excerpt.label} tabIndex={0}>
            {lines(excerpt.text)}
          </pre>
        </div>
      )}
    </section>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** A reason without what the excerpt beside it says: `validation "a"` of `validation "a": b is missing …`. */
function withoutSaid(reason: string, excerpt = ''): string {
  const shown = excerpt.split('\n').filter((each) => each.trim() !== '');
  const [at = -1] = shown.map((each) => reason.indexOf(`: ${each.trim()}`)).filter((place) => place > 0);
  return at === -1 ? reason : reason.slice(0, at);
}

interface Excerpt {
  label: string;
  text: string;
}

/** What goes with the reason: the part of an output that says why, or what a validation or a judge said. */
function excerptOf({ verdict, cause, verifySteps = [], validations = [], judgments = [] }: TrialRecord) {
  if (verdict === 'passed') return undefined;
  if (cause?.output) return partWithReason(cause.phase, cause.output);
  const step = verifySteps.find(({ exitCode }) => exitCode !== 0);
  if (step) return partWithReason(line(step.command.trim().split('\n')[0] ?? ''), step.output);
  const validation = validations.find(({ exitCode = 0 }) => exitCode !== 0);
  if (validation) {
    const { name, message = '', error, output } = validation;
    const said = message.includes('\n') ? message : (error?.text ?? output?.text ?? message);
    return beginningOf(`Validation ${line(name)}`, said);
  }
  const judgment = judgments.find((each) => !reachesThreshold(each));
  return judgment && beginningOf(`Judgment ${line(judgment.name)}`, judgment.reason ?? judgment.error ?? '');
}

/** The lines of an output from the one that says what is wrong, or the last ones. */
function partWithReason(what: string, text: string): Excerpt | undefined {
  const all = text.trimEnd().split('\n');
  const at = findReasonLine(all);
  const isAtEnd = at === -1 || at >= all.length - 2;
  const from = isAtEnd ? Math.max(0, all.length - linesShown) : Math.max(0, at - 1);
  const shown = all.slice(from, from + linesShown).join('\n');
  const label = `${isAtEnd ? 'End of' : 'From'} the output of ${what}`;
  return text.trim() === '' ? undefined : { label, text: shown };
}

function beginningOf(label: string, text: string): Excerpt | undefined {
  const shown = text.trim().split('\n').slice(0, linesShown);
  return text.trim() === '' ? undefined : { label, text: shown.join('\n') };
}
