import { useMemo, useRef } from 'preact/hooks';
import type { GridTrial } from '../../model/grid.ts';
import type { TrialPage as Page } from '../../model/shapes.ts';
import { filtered, isFailed, neighbour } from '../batch/neighbours.ts';
import { useBatch } from '../batch/use-batch.ts';
import { useLoaded } from '../data/source.tsx';
import { line } from '../parts/foreign.ts';
import { Heading, Notice } from '../parts/heading.tsx';
import { standingOf, Verdict } from '../parts/verdict.tsx';
import { addressOf, go } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { Attempts } from './attempts.tsx';
import { RecordContext, type ShownRecord } from './record-context.ts';
import { TrialTabs } from './trial-tabs.tsx';
import { Why } from './why.tsx';

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
  const neighbours = useNeighbours(batch.current, trial, filter);
  const open = (next: GridTrial | undefined) => next && go(addressOf(`/trial/${next.key}`, { q: filter }));
  const back = page && addressOf(`/batch/${page.batch.key}`, { q: filter, at: String(trial) });

  useShortcuts([
    { keys: ['j'], does: 'Next trial', run: () => open(neighbours.next) },
    { keys: ['k'], does: 'Previous trial', run: () => open(neighbours.previous) },
    { keys: ['n', ']'], does: 'Next trial that failed or is void', run: () => open(neighbours.nextFailed) },
    {
      keys: ['p', '['],
      does: 'Previous trial that failed or is void',
      run: () => open(neighbours.previousFailed),
    },
    { keys: ['u'], does: 'Back to the batch', run: () => back && go(back) },
  ]);

  if (!page)
    return (
      <>
        <Heading title="Trial">Trial</Heading>
        <Notice error={error} />
      </>
    );
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
          <Step name="Previous" to={neighbours.previous} filter={filter} />
          <Step name="Next" to={neighbours.next} filter={filter} />
          <Step name="Next failed" to={neighbours.nextFailed} filter={filter} />
        </nav>
      </div>
      {error && <Notice error={error} />}
      <Found key={`${trial} ${attempt ?? ''}`} page={page} query={query} />
    </div>
  );
}

function Found({ page, query }: { page: Page; query: URLSearchParams }) {
  const { trial, attempt, found, unreadable, attempts } = page;
  const shown = useMemo<ShownRecord | undefined>(
    () => found && { ...found, reference: { trial: trial.key, attempt } },
    [found, trial.key, attempt],
  );
  if (!shown)
    return (
      <>
        <section class="why" aria-label="Verdict">
          <Verdict standing={standingOf(trial)} />
          {unreadable !== undefined && <p role="alert">{line(unreadable)}</p>}
          {trial.state === 'running' && <p>It is in progress. This page changes when it ends.</p>}
          {trial.state === 'queued' && <p>It is queued.</p>}
        </section>
        <Attempts page={page} />
      </>
    );
  return (
    <RecordContext.Provider value={shown}>
      {attempt !== undefined && (
        <p class="note">
          This is what attempt {attempt} of {attempts.length} found. It does not count.{' '}
          <a href={addressOf(`/trial/${trial.key}`)}>Show the trial's result</a>
        </p>
      )}
      <Why attempts={attempts.length} audit={attempt === undefined ? trial.audit : undefined} />
      <TrialTabs page={page} query={query} />
    </RecordContext.Provider>
  );
}

function Step({ name, to, filter }: { name: string; to: GridTrial | undefined; filter: string }) {
  if (!to)
    return (
      <span class="button off" aria-disabled="true">
        {name}
      </span>
    );
  return (
    <a class="button" href={addressOf(`/trial/${to.key}`, { q: filter })}>
      {name}
    </a>
  );
}

function useNeighbours(batch: number | undefined, trial: number, filter: string) {
  const { trials } = useBatch(batch, filter !== '');
  return useMemo(() => {
    const list = filtered(trials, filter);
    // If a link leads to a trial that the filter leaves out, its place in the batch counts.
    const all = [list, trials].find((each) => each.some(({ key }) => key === trial)) ?? [];
    return {
      previous: neighbour(all, trial, -1),
      next: neighbour(all, trial, 1),
      previousFailed: neighbour(all, trial, -1, isFailed),
      nextFailed: neighbour(all, trial, 1, isFailed),
    };
  }, [trials, trial, filter]);
}
