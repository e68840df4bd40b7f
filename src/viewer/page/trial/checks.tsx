import type { Judgment } from '../../../contract/validation.ts';
import { hasPassed, reachesThreshold, standingOf } from '../../../record/failures.ts';
import { stepRewards, stepRewardText, stepStanding } from '../../../record/step-standing.ts';
import type { StepResult } from '../../../record/trial-record.ts';
import { stepUsage } from '../../../record/usage.ts';
import { entryDetails } from '../../model/entry.ts';
import { Fold } from '../parts/fold.tsx';
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
  const textsOf = (kind: 'verify' | 'validation', index: number) =>
    entryDetails(record, { kind, index, failed: false }).texts;
  return (
    <div class="scroll-pane">
      <Steps />
      {verifySteps.length > 0 && (
        <section>
          <h2>Verify{verifiedIn && <span class="dim"> in {sandboxText(verifiedIn)}</span>}</h2>
          {verifySteps.map((step, index) => (
            <Check
              key={index}
              isPassed={step.exitCode === 0}
              title={step.command.trim().split('\n')[0] ?? ''}
              note={noteOf(`exit ${step.exitCode}`, step.durationMs)}
              // A command of one line is the title.
              texts={textsOf('verify', index).slice(step.command.trim().includes('\n') ? 0 : 1)}
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
              isPassed={validation.exitCode === undefined ? undefined : hasPassed(validation, judgments)}
              title={validation.name}
              note={noteOf(standingOf(validation, judgments) ?? '', validation.durationMs)}
              texts={textsOf('validation', index)}
            />
          ))}
        </section>
      )}
      {judgments.length > 0 && (
        <section>
          <h2>Judgments</h2>
          {judgments.map((judgment, index) => (
            <Check
              key={index}
              isPassed={judgment.threshold === undefined ? undefined : reachesThreshold(judgment)}
              isOpen
              title={judgment.name}
              note={noteOfJudgment(judgment)}
              texts={[
                { label: 'Error', pointer: `/judgments/${index}/error` },
                { label: 'Reason', pointer: `/judgments/${index}/reason` },
              ]}
            />
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
  /** Undefined without a verdict. */
  isPassed: boolean | undefined;
  isOpen?: boolean;
  title: string;
  note: string;
  texts: { label: string; pointer: string }[];
}

function Check({ isPassed, isOpen = isPassed !== true, title, note, texts }: CheckProps) {
  const summary = (
    <>
      <Sign isPassed={isPassed} /> <span class="name">{line(title)}</span> <span class="dim">{note}</span>
    </>
  );
  return (
    <Fold class="check" isOpen={isOpen} summary={summary}>
      {() => texts.map((text) => <RecordText key={text.pointer} {...text} />)}
    </Fold>
  );
}

/** What a judge was asked to reach, and who judged. */
function noteOfJudgment({ score, threshold, choice, model, evaluator, durationMs }: Judgment): string {
  const facts = [
    `score ${score ?? 'none'}`,
    threshold !== undefined && `threshold ${threshold}`,
    choice !== undefined && `choice ${line(choice)}`,
    model !== undefined && line(model),
    evaluator !== undefined && line(evaluator),
    durationMs !== undefined && duration(durationMs),
  ];
  return facts.filter((fact) => fact !== false).join(' · ');
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
