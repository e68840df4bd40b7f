import type { Judgment } from '../../../contract/validation.ts';
import { hasPassed, reachesThreshold, standingOf } from '../../../record/failures.ts';
import { stepRewards, stepRewardText, stepStanding } from '../../../record/step-standing.ts';
import type { StepResult } from '../../../record/trial-record.ts';
import { stepUsage } from '../../../record/usage.ts';
import { entryDetails } from '../../model/entry.ts';
import { line } from '../parts/foreign.ts';
import { count, duration } from '../parts/quantities.ts';
import { Verdict } from '../parts/verdict.tsx';
import { RecordText, useRecord } from './record-context.tsx';

/** Verify steps, validations and judgments. Those that failed are open. */
export function Checks() {
  const { record } = useRecord();
  const {
    verifySteps = [],
    validations = [],
    judgments = [],
    verifiedIn,
    validatedIn,
    systemChanges,
  } = record;
  if (verifySteps.length + validations.length + judgments.length === 0)
    return <p class="notice">Nothing was checked.</p>;
  return (
    <div class="scroll-pane">
      <Steps />
      {verifySteps.length > 0 && (
        <section>
          <h2>Verify{verifiedIn && <span class="dim"> in {sandboxText(verifiedIn)}</span>}</h2>
          {verifySteps.map((step, index) => (
            <Check
              key={index}
              kind="verify"
              index={index}
              isPassed={step.exitCode === 0}
              title={step.command.trim().split('\n')[0] ?? ''}
              note={noteOf(`exit ${step.exitCode}`, step.durationMs)}
            />
          ))}
        </section>
      )}
      {validations.length > 0 && (
        <section>
          <h2>Validations{validatedIn && <span class="dim"> in {sandboxText(validatedIn)}</span>}</h2>
          {validations.map((validation, index) => (
            <Check
              key={validation.id}
              kind="validation"
              index={index}
              isPassed={validation.exitCode === undefined ? undefined : hasPassed(validation, judgments)}
              title={validation.name}
              note={noteOf(standingOf(validation, judgments) ?? '', validation.durationMs)}
            />
          ))}
        </section>
      )}
      {judgments.length > 0 && (
        <section>
          <h2>Judgments</h2>
          {judgments.map((judgment, index) => (
            <JudgmentView key={index} judgment={judgment} index={index} />
          ))}
        </section>
      )}
      {systemChanges && systemChanges.unexpected.count > 0 && (
        <section>
          <h2>Changed outside the workspace</h2>
          <ul class="paths">
            {systemChanges.unexpected.paths.map((path) => (
              <li key={path}>{line(path)}</li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

const sandboxText = (where: 'fresh' | 'same') =>
  where === 'fresh' ? 'a fresh sandbox' : "the agent's sandbox";

function noteOf(ending: string, durationMs: number | undefined): string {
  return durationMs === undefined ? ending : `${ending} · ${duration(durationMs)}`;
}

interface CheckProps {
  kind: 'verify' | 'validation';
  index: number;
  /** Undefined without a verdict. */
  isPassed: boolean | undefined;
  title: string;
  note: string;
}

function Check({ kind, index, isPassed, title, note }: CheckProps) {
  const { record } = useRecord();
  const { texts } = entryDetails(record, { kind, index, at: 0, title, failed: isPassed === false });
  return (
    <details class="check" open={isPassed !== true}>
      <summary>
        <Sign isPassed={isPassed} /> <span class="name">{line(title)}</span> <span class="dim">{note}</span>
      </summary>
      {texts
        .filter(({ label, text }) => label !== 'Command' || text.trim() !== title)
        .map(({ label, pointer, text }) => (
          <RecordText key={pointer} {...{ label, pointer, text }} />
        ))}
    </details>
  );
}

function JudgmentView({ judgment, index }: { judgment: Judgment; index: number }) {
  const { name, score, threshold, choice, model, reason, error, evaluator, durationMs } = judgment;
  const isPassed = threshold === undefined ? undefined : reachesThreshold(judgment);
  const facts = [
    `score ${score ?? 'none'}`,
    ...(threshold === undefined ? [] : [`threshold ${threshold}`]),
    ...(choice === undefined ? [] : [`choice ${line(choice)}`]),
    ...(model === undefined ? [] : [line(model)]),
    ...(evaluator === undefined ? [] : [line(evaluator)]),
    ...(durationMs === undefined ? [] : [duration(durationMs)]),
  ];
  return (
    <details class="check" open>
      <summary>
        <Sign isPassed={isPassed} /> <span class="name">{line(name)}</span>{' '}
        <span class="dim">{facts.join(' · ')}</span>
      </summary>
      {error !== undefined && <RecordText label="Error" pointer={`/judgments/${index}/error`} text={error} />}
      {reason !== undefined && (
        <RecordText label="Reason" pointer={`/judgments/${index}/reason`} text={reason} />
      )}
    </details>
  );
}

function Sign({ isPassed }: { isPassed: boolean | undefined }) {
  if (isPassed === undefined)
    return (
      <span class="sign void">
        ○<span class="unseen"> no verdict</span>
      </span>
    );
  return (
    <span class={`sign ${isPassed ? 'passed' : 'failed'}`}>
      {isPassed ? '✓' : '✗'}
      <span class="unseen">{isPassed ? ' passed' : ' failed'}</span>
    </span>
  );
}

/** The steps of a trial whose case has several. A step has passed if its rewards reached their thresholds. */
function Steps() {
  const { record } = useRecord();
  if (!record.steps) return null;
  return (
    <section>
      <h2>Steps</h2>
      <table class="steps">
        <thead>
          <tr>
            <th>Step</th>
            <th>Verdict</th>
            <th>Result</th>
            <th>Time</th>
            <th>Tokens</th>
          </tr>
        </thead>
        <tbody>
          {record.steps.map((step) => (
            <StepRow key={step.name} step={step} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function StepRow({ step }: { step: StepResult }) {
  const { record } = useRecord();
  const { name, startedAt, finishedAt, cause } = step;
  const standing = stepStanding(step, record);
  const rewards = stepRewards(step, record);
  const isRun = startedAt !== undefined && finishedAt !== undefined;
  const said = rewards.length > 0 ? rewards.map(stepRewardText) : cause ? [cause.message] : [];
  return (
    <tr>
      <td>{line(name)}</td>
      <td>
        {standing === 'not-run' ? (
          'not run'
        ) : standing === 'no-threshold' ? (
          'nothing to reach'
        ) : (
          <Verdict standing={standing} />
        )}
      </td>
      <td>{line(said.join('; '))}</td>
      <td>{isRun && duration(finishedAt - startedAt)}</td>
      <td>{isRun && count(stepUsage(record, { startedAt, finishedAt }).totalTokens)}</td>
    </tr>
  );
}
