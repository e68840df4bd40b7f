import { useMemo, useRef } from 'preact/hooks';
import { findReasonLine, reachesThreshold } from '../../../record/failures.ts';
import { commandsOf } from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { usageOf } from '../../../record/usage.ts';
import { explain } from '../../model/explain.ts';
import { parseFilter } from '../../model/filter.ts';
import type { TrialPage as Page, TrialRow } from '../../model/shapes.ts';
import { isFailed, useBatch } from '../batch/use-batch.ts';
import { useLoaded } from '../data/source.tsx';
import { line, lines } from '../parts/foreign.ts';
import { Figure, Heading, Notice, Pending } from '../parts/heading.tsx';
import { cost, count, duration } from '../parts/quantities.ts';
import { AuditChip, standingOf, Verdict } from '../parts/verdict.tsx';
import { addressOf, go } from '../router.ts';
import { nextOf, rowShortcuts, useShortcuts } from '../shortcuts.ts';
import { Attempts } from './attempts.tsx';
import { RecordOf, useRecord } from './record-context.tsx';
import { TrialTabs } from './trial-tabs.tsx';

/** One trial: its verdict with the reason, then all that happened. */
export function TrialPage({ trial, query }: { trial: number; query: URLSearchParams }) {
  const attemptText = query.get('attempt');
  const attempt = attemptText === null ? undefined : Number(attemptText);
  const { value: page, error } = useLoaded(
    `trial ${trial} ${attempt ?? ''}`,
    (source, signal) => source.trial({ trial, attempt }, signal),
    (event) => event.trials.includes(trial),
  );
  const filter = query.get('q') ?? '';
  // While the next trial loads, the neighbours are those of its batch: keys may come faster than trials.
  const batch = useRef<number | undefined>(undefined);
  batch.current = page?.batch.key ?? batch.current;
  const { items, at } = useTrials(batch.current, trial, filter);
  const addressAt = ({ key }: TrialRow) => addressOf(`/trial/${key}`, { q: filter });
  const back = page && addressOf(`/batch/${page.batch.key}`, { q: filter, at: String(trial) });

  useShortcuts([
    ...rowShortcuts({
      what: 'trial',
      items,
      at,
      select: (next) => go(addressAt(next)),
      stops: { which: 'that failed or is void', fits: isFailed },
    }),
    { keys: ['u'], does: 'Back to the batch', run: () => back && go(back) },
  ]);

  if (!page) return <Pending title="Trial" error={error} />;
  const { caseName, variant, ordinal } = page.trial;
  const title = `${line(caseName)} · ${line(variant)} #${ordinal}`;
  return (
    <div class="page fill trial">
      <nav class="crumbs" aria-label="You are here">
        <a href={addressOf('/')}>Batches</a> <span aria-hidden="true">/</span>{' '}
        <a href={back}>
          {line(page.batch.suite)} <span class="id">{line(page.batch.id)}</span>
        </a>{' '}
        <span aria-hidden="true">/</span>{' '}
        <span class="id" title="offsite show takes this name">
          {line(page.trial.caseId)}/{line(variant)}#{ordinal}
        </span>
      </nav>
      <div class="head">
        <Heading title={title}>
          {line(caseName)}{' '}
          <span class="dim">
            · {line(variant)} #{ordinal}
          </span>
        </Heading>
        <span class="grow" />
        <nav class="steps" aria-label="Other trials of the batch">
          {steps.map(([name, direction, fits]) => {
            const next = nextOf(items, at, direction, fits);
            return next ? (
              <a key={name} class="button" href={addressAt(next)}>
                {name}
              </a>
            ) : (
              <span key={name} class="button off" aria-disabled="true">
                {name}
              </span>
            );
          })}
        </nav>
      </div>
      {error && <Notice error={error} />}
      <Found key={`${trial} ${attempt ?? ''}`} page={page} query={query} />
    </div>
  );
}

function Found({ page, query }: { page: Page; query: URLSearchParams }) {
  const { trial, attempt, found, unreadable, attempts } = page;
  if (!found)
    return (
      <>
        <section class="why" aria-label="Verdict">
          <Verdict standing={standingOf(trial)} />
          {unreadable !== undefined && <p role="alert">{line(unreadable)}</p>}
          {trial.state === 'running' && <p>It is in progress. This page changes when it ends.</p>}
        </section>
        <Attempts page={page} />
      </>
    );
  return (
    <RecordOf page={page}>
      {attempt !== undefined && (
        <p class="note">
          This is what attempt {attempt} of {attempts.length} found. It does not count.{' '}
          <a href={addressOf(`/trial/${trial.key}`)}>Show the trial's result</a>
        </p>
      )}
      {trial.superseded && (
        <p class="note">This result does not count: the service has another one of this trial.</p>
      )}
      <Why attempts={attempts.length} audit={attempt === undefined ? trial.audit : undefined} />
      <TrialTabs page={page} query={query} />
    </RecordOf>
  );
}

const steps = [
  ['Previous', -1],
  ['Next', 1],
  ['Next failed', 1, isFailed],
] as const;

/** The trials of the batch that the filter leaves, and the place of this one. */
function useTrials(batch: number | undefined, trial: number, filter: string) {
  const { trials } = useBatch(batch);
  return useMemo(() => {
    const left = trials.filter(parseFilter(filter).matches);
    const placeIn = (list: readonly TrialRow[]) => list.findIndex(({ key }) => key === trial);
    // If a link leads to a trial that the filter leaves out, its place in the batch counts.
    const items = [left, trials].find((each) => placeIn(each) !== -1) ?? [];
    return { items, at: placeIn(items) };
  }, [trials, trial, filter]);
}

/** Reasons that are shown here; the tab Checks has all. */
const reasonsShown = 3;
/** Lines of output that are shown beside the reason. */
const linesShown = 12;

/** The verdict, whose fault it is and why, with the output that says so. */
function Why({ attempts, audit }: { attempts: number } & Pick<TrialRow, 'audit'>) {
  const { record } = useRecord();
  const { fault, reasons } = explain(record);
  const said = excerptOf(record);
  // Many outputs are one line, which is the reason itself.
  const excerpt = reasons.some((reason) => said && reason.includes(said.text.trim())) ? undefined : said;
  const usage = usageOf(record);
  const commands = commandsOf(record);
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
              {usage?.cacheReadTokens !== undefined && (
                <Figure name="From cache" value={count(usage.cacheReadTokens)} />
              )}
              <Figure name="Cost" value={cost(usage?.costUsd)} />
            </>
          )}
          {commands && <Figure name="Commands" value={count(commands.length)} />}
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
