import { commandsOf } from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { usageOf } from '../../../record/usage.ts';
import { explain } from '../../model/explain.ts';
import { line, lines } from '../parts/foreign.ts';
import { cost, count, duration } from '../parts/quantities.ts';
import { Verdict } from '../parts/verdict.tsx';
import { useRecord } from './record-context.ts';

/** Reasons that are shown; the checks have all. */
const reasonsShown = 3;
/** Lines of output that are shown beside the reason. */
const linesShown = 12;

/** The verdict, whose fault it is and why, with the output that says so. */
export function Why({ attempts }: { attempts: number }) {
  const { record } = useRecord();
  const { fault, reasons } = explain(record);
  const excerpt = excerptOf(record);
  const usage = usageOf(record);
  return (
    <section class={`why ${record.verdict}`} aria-label="Verdict">
      <div class="because">
        <p class="fault">
          <Verdict standing={record.verdict} />
          {record.cause && <span class="tag">{record.cause.kind}</span>}
          {fault !== undefined && <span>{fault}</span>}
        </p>
        {reasons.length > 0 && (
          <ul class="reasons">
            {reasons.slice(0, reasonsShown).map((reason) => (
              <li key={reason}>{line(reason)}</li>
            ))}
            {reasons.length > reasonsShown && <li class="dim">and {reasons.length - reasonsShown} more</li>}
          </ul>
        )}
        <dl class="figures">
          <Figure name="Time" value={duration(record.finishedAt - record.startedAt)} />
          <Figure name="Tokens" value={count(usage?.totalTokens)} />
          <Figure name="From cache" value={count(usage?.cacheReadTokens)} />
          <Figure name="Cost" value={cost(usage?.costUsd)} />
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

/** The end of the output that goes with the reason. */
function excerptOf({ verdict, cause, verifySteps = [] }: TrialRecord) {
  if (verdict === 'passed') return undefined;
  const step = verifySteps.find(({ exitCode }) => exitCode !== 0);
  const [label, text] = cause?.output
    ? [`End of the output of ${cause.phase}`, cause.output]
    : [`End of the output of ${line(step?.command.trim().split('\n')[0] ?? '')}`, step?.output ?? ''];
  if (text.trim() === '') return undefined;
  return { label, text: text.trimEnd().split('\n').slice(-linesShown).join('\n') };
}
