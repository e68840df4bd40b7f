import { stepRewards, stepRewardText, stepStanding } from '../../../record/step-standing.ts';
import type { StepResult } from '../../../record/trial-record.ts';
import { stepUsage } from '../../../record/usage.ts';
import { line } from '../parts/foreign.ts';
import { count, duration } from '../parts/quantities.ts';
import { Verdict } from '../parts/verdict.tsx';
import { useRecord } from './record-context.ts';

/** The steps of a trial whose case has several. A step has passed if its rewards reached their thresholds. */
export function Steps() {
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
