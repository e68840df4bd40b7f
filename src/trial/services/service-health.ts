import type { Clock } from '../../base/clock.ts';
import { serviceOutput } from '../../bounds/sandbox.ts';
import type { Checked, Service } from '../../engine/service.ts';
import { TrialFailure } from '../failure.ts';
import type { ServiceImage } from './service-image.ts';

/**
 * Waits until the health check of a service succeeds. The check runs more often than its interval says, so
 * that trials wait less. It gets as much time as with its own interval, and at least as many attempts. Throws
 * a {@link TrialFailure} of kind `task` if that was not enough, or if the service ended.
 */
export async function untilHealthy(
  service: Service,
  { planned, healthcheck }: ServiceImage,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (!healthcheck) return;
  const { command, interval, timeout, startPeriod, retries } = healthcheck;
  const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
  const begun = clock.now();
  const patience = Math.min(startPeriod + retries * interval, serviceOutput.time.health);
  for (let attempts = 1; ; attempts++) {
    const checked = await service.check(argv, timeout, signal);
    if (checked.exitCode === 0) return;
    const ended = await service.exitCode(signal);
    if (ended !== undefined) throw endedEarly(service, planned.name, planned.place, ended);
    const waited = clock.now() - begun;
    if ((waited >= patience && attempts >= retries) || waited >= serviceOutput.time.health)
      throw neverHealthy(service, planned.name, planned.place, checked, waited);
    await clock.sleep(Math.min(interval, serviceOutput.time.poll), signal);
  }
}

/**
 * Waits until a service has ended with exit code 0, because another service needs that. Throws as
 * {@link untilHealthy} does.
 */
export async function untilEnded(
  service: Service,
  { planned: { name, place } }: ServiceImage,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const begun = clock.now();
  while (clock.now() - begun < serviceOutput.time.health) {
    const exitCode = await service.exitCode(signal);
    if (exitCode === 0) return;
    if (exitCode !== undefined) throw endedEarly(service, name, place, exitCode);
    await clock.sleep(serviceOutput.time.poll, signal);
  }
  const message = `${place}: the service ${name} did not end in ${serviceOutput.time.health / 1000} s`;
  throw failed(service, message);
}

/** Throws as {@link untilHealthy} does if a service has failed. One round trip. */
export async function requireNotFailed(
  service: Service,
  { planned: { name, place } }: ServiceImage,
  signal: AbortSignal,
): Promise<void> {
  const exitCode = await service.exitCode(signal);
  if (exitCode !== undefined && exitCode !== 0) throw endedEarly(service, name, place, exitCode);
}

function endedEarly(service: Service, name: string, place: string, exitCode: number): TrialFailure {
  return failed(service, `${place}: the service ${name} ended with ${exitCode}`);
}

function neverHealthy(
  service: Service,
  name: string,
  place: string,
  { exitCode, detail }: Checked,
  waited: number,
): TrialFailure {
  const how = exitCode === undefined ? 'did not finish' : `exited with ${exitCode}`;
  const seconds = Math.round(waited / 1000);
  // Most programs say in their last line what is wrong, such as Python after its traceback.
  const lines = detail.split('\n');
  const printed = detail === '' ? '' : `: ${lines.at(-1)}`;
  const message = `${place}: the service ${name} was not healthy after ${seconds} s; its check ${how}${printed}`;
  return failed(service, message, lines.length > 1 ? `${detail}\n` : '');
}

function failed(service: Service, message: string, checked = ''): TrialFailure {
  const { text } = service.log();
  const output = checked + text.slice(-serviceOutput.bytes.shown);
  return new TrialFailure({ kind: 'task', phase: 'sandbox', message, ...(output !== '' && { output }) });
}
