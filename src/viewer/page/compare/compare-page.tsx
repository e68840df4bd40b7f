import { useMemo } from 'preact/hooks';
import { type ChangedPart, fingerprintChanges } from '../../../record/fingerprint.ts';
import { type ComparedTrials, chooseVariants, compareTrials } from '../../model/compare.ts';
import { variantsOf } from '../../model/grid.ts';
import { type LoadedBatch, useBatch } from '../batch/use-batch.ts';
import { line } from '../parts/foreign.ts';
import { Heading, Notice } from '../parts/heading.tsx';
import { plural, when } from '../parts/quantities.ts';
import { addressOf, setQuery } from '../router.ts';
import { CaseList } from './case-list.tsx';
import { Finding } from './finding.tsx';
import { Measures, shownMeasures } from './measures.tsx';
import { Transcripts } from './transcripts.tsx';

/** Two batches, or two variants of one: what changed, and whether it is more than noise. */
export function ComparePage({ query }: { query: URLSearchParams }) {
  const [a, b] = [Number(query.get('left')), Number(query.get('right'))];
  const left = useBatch(a);
  const right = useBatch(b);
  const variants = useMemo(
    () =>
      chooseVariants(
        { trials: left.trials, variant: query.get('leftVariant') ?? undefined },
        { trials: right.trials, variant: query.get('rightVariant') ?? undefined },
        a === b,
      ),
    [left.trials, right.trials, query, a, b],
  );
  const changed = useMemo(() => {
    const fingerprintsOf = ({ value }: LoadedBatch, variant: string | undefined) =>
      value?.fingerprints.filter((one) => one.variant === variant) ?? [];
    return fingerprintChanges(fingerprintsOf(left, variants.a), fingerprintsOf(right, variants.b));
  }, [left.value, right.value, variants.a, variants.b]);
  const compared = useMemo(
    () =>
      compareTrials(
        left.trials.filter(({ variant }) => variant === variants.a),
        right.trials.filter(({ variant }) => variant === variants.b),
        variants.confidence,
        changed?.cases,
      ),
    [left.trials, right.trials, changed, variants.a, variants.b, variants.confidence],
  );
  const chosen = compared.cases.find(({ caseId }) => caseId === query.get('case'));
  if (!left.value || !right.value)
    return (
      <>
        <Heading title="Compare">Compare</Heading>
        <Notice error={left.error ?? right.error} />
      </>
    );
  return (
    <div class="page fill compare">
      <nav class="crumbs" aria-label="You are here">
        <a href={addressOf('/')}>Batches</a> <span aria-hidden="true">/</span> <span>compare</span>
      </nav>
      <div class="head">
        <Heading title="Compare">Compare</Heading>
        <span class="grow" />
        {chosen && (
          <button type="button" onClick={() => setQuery({ case: undefined })}>
            All cases
          </button>
        )}
        <a class="button" href={swapped(query)}>
          Swap A and B
        </a>
      </div>
      <div class="sides">
        <Side name="A" loaded={left} variant={variants.a} parameter="leftVariant" />
        <Side name="B" loaded={right} variant={variants.b} parameter="rightVariant" />
      </div>
      {chosen ? (
        <Transcripts compared={chosen} query={query} />
      ) : (
        <Overview
          {...{ compared, query, ...variants }}
          variantChanges={variants.a === variants.b ? (changed?.variant ?? []) : []}
          unknownParts={changed?.unknown ?? []}
          waiting={left.waiting + right.waiting}
        />
      )}
    </div>
  );
}

interface OverviewProps {
  compared: ComparedTrials;
  confidence: number;
  inCommon: number;
  variantChanges: readonly ChangedPart[];
  unknownParts: readonly string[];
  query: URLSearchParams;
  waiting: number;
}

function Overview({ compared, query, waiting, ...finding }: OverviewProps) {
  return (
    <>
      <div class="findings">
        <Finding compared={compared} {...finding} />
        <Measures compared={compared} />
      </div>
      {waiting > 0 && <p class="dim">reading {plural(waiting, 'record')} …</p>}
      <CaseList cases={compared.cases} measures={shownMeasures(compared.measures)} query={query} />
    </>
  );
}

interface SideProps {
  name: string;
  loaded: LoadedBatch;
  variant: string | undefined;
  parameter: 'leftVariant' | 'rightVariant';
}

function Side({ name, loaded: { value, trials }, variant, parameter }: SideProps) {
  const variants = variantsOf(trials);
  if (!value) return null;
  const { key, suite, id, startedAt, marks } = value.batch;
  const { exported } = value;
  return (
    <div class="side">
      <b class="letter">{name}</b>
      <span>
        <a href={addressOf(`/batch/${key}`)}>
          {line(suite)} <span class="id">{line(id)}</span>
        </a>{' '}
        <span class="dim">
          {when(startedAt)}
          {exported && ` on ${line(exported.machine)}`}
        </span>
        {marks.map((mark) => (
          <span key={mark} class="tag">
            {mark}
          </span>
        ))}
      </span>
      <select
        aria-label={`Variant of ${name}`}
        value={variant}
        onChange={(event) => setQuery({ [parameter]: event.currentTarget.value })}
      >
        {variants.map((each) => (
          <option key={each} value={each}>
            {line(each)}
          </option>
        ))}
      </select>
    </div>
  );
}

function swapped(query: URLSearchParams): string {
  const all = Object.fromEntries(query);
  const pairs = ['', 'Variant', 'Trial', 'Sel'].flatMap((part) => [
    [`left${part}`, all[`right${part}`]],
    [`right${part}`, all[`left${part}`]],
  ]);
  return addressOf('/compare', { ...all, ...Object.fromEntries(pairs) });
}
