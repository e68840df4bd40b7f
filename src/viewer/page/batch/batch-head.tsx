import { commitText } from '../../../record/suite-commit.ts';
import { passRate } from '../../../stats/pass-rate.ts';
import { caseVerdicts } from '../../model/compare.ts';
import { type GridTrial, tallyOf } from '../../model/grid.ts';
import { type BatchRow, type Exported, isPlatforms, partText } from '../../model/shapes.ts';
import { line } from '../parts/foreign.ts';
import { Heading } from '../parts/heading.tsx';
import { ago, cost, count, duration, percent, when } from '../parts/quantities.ts';
import { TallyBar, tallyText } from '../parts/verdict.tsx';
import { addressOf } from '../router.ts';

interface BatchHeadProps {
  batch: BatchRow;
  exported: Exported | undefined;
  trials: GridTrial[];
  isFiltered: boolean;
  variants: string[];
}

/** Which batch it is, and its numbers. */
export function BatchHead({ batch, exported, trials, isFiltered, variants }: BatchHeadProps) {
  const tally = tallyOf(trials);
  const rate = passRate(caseVerdicts(trials));
  const sum = (numbers: (number | undefined)[]) => {
    const known = numbers.filter((number) => number !== undefined);
    return known.length === 0 ? undefined : known.reduce((total, number) => total + number, 0);
  };
  // 0 if no model was used.
  const tokens = sum(trials.map(({ summary }) => summary?.totalTokens));
  const [left, right] = variants;
  return (
    <>
      <nav class="crumbs" aria-label="You are here">
        <a href={addressOf('/')}>Batches</a> <span aria-hidden="true">/</span> <span>{line(batch.id)}</span>
      </nav>
      <div class="head">
        <Heading title={`${line(batch.suite)} · ${line(batch.id)}`}>{line(batch.suite)}</Heading>
        <span class="dim" title={ago(batch.startedAt)}>
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
              ...{ left: String(batch.key), right: String(batch.key) },
              ...{ leftVariant: left, rightVariant: right },
            })}
          >
            Compare variants
          </a>
        )}
      </div>
      <dl class="figures">
        <div>
          <dt>Pass rate{isFiltered && ' of these'}, mean of cases</dt>
          <dd>
            {percent(rate?.rate)}{' '}
            {rate && !isFiltered && (
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
        {tokens !== 0 && <Figure name="Tokens" value={count(tokens)} />}
        {tokens !== 0 && (
          <Figure name="Cost" value={cost(sum(trials.map(({ summary }) => summary?.costUsd)))} />
        )}
      </dl>
    </>
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

/** The median of the known numbers; undefined if none is known. */
function median(numbers: (number | undefined)[]): number | undefined {
  const known = numbers.filter((number) => number !== undefined).sort((one, other) => one - other);
  return known[Math.floor(known.length / 2)];
}
