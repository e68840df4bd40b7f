import { useMemo } from 'preact/hooks';
import { mixedTexts } from '../../../record/fingerprint.ts';
import { commitText } from '../../../record/suite-commit.ts';
import { passRate } from '../../../stats/pass-rate.ts';
import { casesOf, findingOf, lacksTrials } from '../../model/compare.ts';
import { fieldOf, parseFilter, withField } from '../../model/filter.ts';
import { tallyOf, variantsOf } from '../../model/grid.ts';
import { type BatchRow, type Exported, isPlatforms, partText, type TrialRow } from '../../model/shapes.ts';
import { FilterBox } from '../parts/filter-box.tsx';
import { line } from '../parts/foreign.ts';
import { Figure, Heading, Notice, Pending } from '../parts/heading.tsx';
import { cost, count, duration, percent, plural, sumText, when } from '../parts/quantities.ts';
import { Table } from '../parts/table.tsx';
import { AuditChip, signOf, standingOf, TallyBar, tallyText, Verdict } from '../parts/verdict.tsx';
import { addressOf, go, setQuery } from '../router.ts';
import { rowShortcuts, useShortcuts } from '../shortcuts.ts';
import { BatchGrid } from './batch-grid.tsx';
import { isFailed, useBatch } from './use-batch.ts';

/** One batch: its trials as a grid of cases and variants, or as a list. */
export function BatchPage({ batch, query }: { batch: number; query: URLSearchParams }) {
  const { value, trials, error } = useBatch(batch);
  const filter = query.get('q') ?? '';
  const parsed = useMemo(() => parseFilter(filter), [filter]);
  const shown = useMemo(() => trials.filter(parsed.matches), [trials, parsed]);
  const variants = useMemo(() => variantsOf(trials), [trials]);
  const finding = useMemo(() => value && findingOf(value), [value]);
  const view = query.get('view') === 'list' ? 'list' : 'grid';
  const at = query.get('at') === null ? undefined : Number(query.get('at'));
  const address = (trial: TrialRow) => addressOf(`/trial/${trial.key}`, { q: filter });

  useShortcuts([
    ...rowShortcuts({
      what: 'trial',
      items: shown,
      at: shown.findIndex(({ key }) => key === at),
      select: ({ key }) => setQuery({ at: String(key) }),
      open: { does: 'Open the trial', run: (trial) => go(address(trial)) },
      stops: { which: 'that failed or is void', fits: isFailed },
    }),
    {
      keys: ['v'],
      does: 'Change between grid and list',
      run: () => setQuery({ view: view === 'grid' ? 'list' : undefined }),
    },
  ]);

  if (!value) return <Pending title="Batch" error={error} />;
  return (
    <div class="page fill">
      <BatchHead
        batch={value.batch}
        exported={value.exported}
        trials={shown}
        isPart={filter.trim() !== '' || lacksTrials(value)}
        variants={variants}
      />
      {error && <Notice error={error} />}
      {finding !== undefined && <p>{line(finding)}</p>}
      {mixedTexts(value.fingerprints).map((mixed) => (
        <p key={mixed} class="caution">
          {line(mixed)}
        </p>
      ))}
      <div class="tools">
        <FilterBox
          value={filter}
          onChange={(q) => setQuery({ q })}
          label="Filter trials"
          placeholder="Filter: words, verdict:failed, cause:agent, duration:>90s …   /"
          problems={parsed.problems}
        />
        <VerdictChips filter={filter} trials={trials} />
        <fieldset class="chips">
          <legend class="unseen">View</legend>
          {(['grid', 'list'] as const).map((name) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={view === name}
              onClick={() => setQuery({ view: name === 'grid' ? undefined : name })}
            >
              {name}
            </button>
          ))}
        </fieldset>
        <span class="dim" role="status">
          {filter.trim() !== '' && `${shown.length} of ${trials.length} trials`}
        </span>
        {value.unread !== undefined && <span class="dim">reading {plural(value.unread, 'record')} …</span>}
      </div>
      {shown.length === 0 ? (
        <Notice>
          {trials.length === 0 ? 'The batch has no trial yet.' : 'No trial matches the filter.'}
        </Notice>
      ) : view === 'grid' ? (
        <BatchGrid trials={shown} variants={variants} at={at} addressOf={address} />
      ) : (
        <TrialTable trials={shown} at={at} addressOf={address} />
      )}
    </div>
  );
}

const verdicts = ['passed', 'failed', 'void'] as const;

/** Buttons that set the filter's verdict. */
function VerdictChips({ filter, trials }: { filter: string; trials: TrialRow[] }) {
  const tally = tallyOf(trials);
  const chosen = fieldOf(filter, 'verdict');
  return (
    <fieldset class="chips">
      <legend class="unseen">Verdict</legend>
      {verdicts.map((verdict) => (
        <button
          key={verdict}
          type="button"
          class={`chip ${verdict}`}
          aria-pressed={chosen === verdict}
          onClick={() =>
            setQuery({ q: withField(filter, 'verdict', chosen === verdict ? undefined : verdict) })
          }
        >
          <span class="sign" aria-hidden="true">
            {signOf(verdict)}
          </span>{' '}
          {verdict} {tally[verdict]}
        </button>
      ))}
    </fieldset>
  );
}

interface TrialTableProps {
  trials: TrialRow[];
  at: number | undefined;
  addressOf: (trial: TrialRow) => string;
}

/** Trials with the reason of each. */
function TrialTable({ trials, at, addressOf }: TrialTableProps) {
  const reasonOf = ({ reason, cause }: TrialRow) => line(reason ?? cause?.message ?? '');
  return (
    <Table
      class="trials"
      label="Trials"
      rowsLabel="Trials that match"
      items={trials}
      keyOf={({ key }) => key}
      rowHeight={{ wide: 2.8, narrow: 6.8 }}
      at={trials.findIndex(({ key }) => key === at)}
      columns={[
        { name: 'Verdict', cell: (trial) => <Verdict standing={standingOf(trial)} /> },
        {
          name: 'Trial',
          class: 'name',
          cell: (trial) => (
            <a class="cover" href={addressOf(trial)}>
              <span>{line(trial.caseName)}</span>{' '}
              <span class="dim">
                {line(trial.variant)} #{trial.ordinal}
              </span>
            </a>
          ),
        },
        {
          name: 'Reason',
          class: 'reason',
          attributes: (trial) => ({ title: reasonOf(trial) }),
          cell: (trial) => (
            <>
              <AuditChip audit={trial.audit} />
              {trial.cause && <span class="tag">{trial.cause.kind}</span>}
              {trial.attempts > 1 && <span class="tag">{trial.attempts} attempts</span>}
              {reasonOf(trial)}
            </>
          ),
        },
        { name: 'Time', isNumber: true, cell: ({ durationMs }) => duration(durationMs) },
        {
          name: 'Tokens',
          isNumber: true,
          cell: ({ tokens }) => tokens !== 0 && count(tokens),
        },
        {
          name: 'Cost',
          isNumber: true,
          cell: ({ tokens, costUsd }) => tokens !== 0 && cost(costUsd),
        },
      ]}
    />
  );
}

interface BatchHeadProps {
  batch: BatchRow;
  exported: Exported | undefined;
  trials: TrialRow[];
  /** Whether other trials of the batch are not shown. */
  isPart: boolean;
  variants: string[];
}

/** Which batch it is, and its numbers. */
function BatchHead({ batch, exported, trials, isPart, variants }: BatchHeadProps) {
  const tally = tallyOf(trials);
  const rate = passRate(casesOf(trials));
  const finished = trials.filter(({ verdict }) => verdict !== undefined);
  const tokens = finished.map((trial) => trial.tokens);
  const isModelUsed = tokens.some((number) => number !== 0);
  const costs = finished.map(({ costUsd }) => costUsd);
  // Of judges and simulated users.
  const others = finished.map(({ otherCostUsd }) => otherCostUsd);
  const [left, right] = variants;
  return (
    <>
      <nav class="crumbs" aria-label="You are here">
        <a href={addressOf('/')}>Batches</a> <span aria-hidden="true">/</span> <span>{line(batch.id)}</span>
      </nav>
      <div class="head">
        <Heading title={`${line(batch.suite)} · ${line(batch.id)}`}>{line(batch.suite)}</Heading>
        <span class="dim">
          {isPlatforms(batch.service) && 'run by the platform · '}
          started {when(batch.startedAt)}
        </span>
        {batch.commit && (
          <span class="dim" title={line(batch.commit.id)}>
            at commit {line(commitText(batch.commit))}
          </span>
        )}
        {exported && (
          <span class="dim">
            exported {when(exported.at)} by Offsite {line(exported.offsite)} on {line(exported.machine)}
          </span>
        )}
        {batch.marks.map((mark) => (
          <span key={mark} class="tag">
            {mark}
          </span>
        ))}
        {batch.set && <a href={addressOf('/', { q: batch.set.id })}>{partText(batch.set)}</a>}
        <span class="grow" />
        {left !== undefined && right !== undefined && (
          <a
            class="button"
            href={addressOf('/compare', {
              left: String(batch.key),
              right: String(batch.key),
              leftVariant: left,
              rightVariant: right,
            })}
          >
            Compare variants
          </a>
        )}
      </div>
      <dl class="figures">
        <div>
          <dt>Pass rate{isPart && ' of these'}, mean of cases</dt>
          <dd>
            {percent(rate?.rate)}{' '}
            {rate && !isPart && (
              <span class="dim interval" title="For other cases of the same kind">
                95 % interval {Math.round(rate.interval.low * 100)} to {Math.round(rate.interval.high * 100)}{' '}
                %
              </span>
            )}
          </dd>
        </div>
        <div class="wide">
          <dt>{tallyText(tally)}</dt>
          <dd>
            <TallyBar tally={tally} />
          </dd>
        </div>
        <Figure name="Time, median" value={duration(median(trials.map(({ durationMs }) => durationMs)))} />
        {isModelUsed && <Figure name={`Tokens${knownOf(tokens)}`} value={sumText(tokens, count)} />}
        {isModelUsed && <Figure name={`Cost${knownOf(costs)}`} value={sumText(costs, cost)} />}
        {others.some(Boolean) && (
          <Figure name={`Other cost${knownOf(others)}`} value={sumText(others, cost)} />
        )}
      </dl>
    </>
  );
}

/** How many of the numbers are known; empty if all are, or none. */
function knownOf(numbers: readonly (number | undefined)[]): string {
  const known = numbers.filter((number) => number !== undefined).length;
  if (known === 0 || known === numbers.length) return '';
  return `, known of ${known} of ${plural(numbers.length, 'trial')}`;
}

/** The median of the known numbers; undefined if none is known. */
function median(numbers: (number | undefined)[]): number | undefined {
  const known = numbers.filter((number) => number !== undefined).sort((one, other) => one - other);
  return known[Math.floor(known.length / 2)];
}
