import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings';
import { readAge, readByteSize, readDuration } from '../suite/units.ts';

/** What a command gets of its options, as it declares them. */
export type OptionsOf<Make extends () => { opts(): unknown }> = ReturnType<ReturnType<Make>['opts']>;

/** Adds the options that name the configuration and the data folder. */
export function withConfigAndData<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return command
    .option(
      '--config <file>',
      'the configuration (default: offsite.yaml beside the suite or above it in its repository, here, or in ~/.config/offsite)',
    )
    .option(
      '--data-folder <folder>',
      'the folder for results (default: $OFFSITE_HOME or ~/.local/share/offsite)',
    );
}

/** What help shows above options that few people need. */
export const rareOptions = 'Options that few need:';

/** Adds the options of a command that calls the service and prints the answer. */
export function withService<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return withConfigAndData(command)
    .option('--json', 'print one JSON document on stdout')
    .addOption(insecureHttp());
}

/** What `service.insecureHttp` of offsite.yaml says, for who has no such file. */
export function insecureHttp() {
  return new Option(
    '--insecure-http',
    'allow plain http to a service that is not on this machine',
  ).hideHelp();
}

/** Adds the option of a command that reads a suite. */
export function withAllowOutside<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return command
    .optionsGroup(rareOptions)
    .option(
      '--allow-outside <path...>',
      "files or folders outside the suite's folder that the suite may read",
    )
    .optionsGroup('Options:');
}

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('expected a whole number from 1.');
  return Number(text);
}

export function numberFromZero(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('expected a whole number from 0.');
  return Number(text);
}

/** The longest time that a command may be given, in milliseconds. Timers take less than 25 days. */
const dayMs = 24 * 3_600_000;

/** `90s`, `10m`, `2h`, as in the files; read as milliseconds. */
export function duration(text: string): number {
  const milliseconds = readDuration(text) ?? 0;
  if (milliseconds === 0 || milliseconds > dayMs)
    throw new InvalidArgumentError('expected a duration such as 90s, 10m or 2h, up to 24h.');
  return milliseconds;
}

/** `512m`, `10g`, as in the files; read as bytes. */
export function byteSize(text: string): number {
  const bytes = readByteSize(text);
  if (bytes === undefined) throw new InvalidArgumentError('expected a size such as 512m or 10g.');
  return bytes;
}

/** `90m`, `12h`, `7d`; read as milliseconds. */
export function age(text: string): number {
  const milliseconds = readAge(text);
  if (milliseconds === undefined) throw new InvalidArgumentError('expected a time such as 90m, 12h or 7d.');
  return milliseconds;
}

/** The seed of a sample. */
export function seed(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value >= 2 ** 32)
    throw new InvalidArgumentError('expected a whole number from 0, below 4294967296.');
  return value;
}

export function finiteNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('expected a number.');
  return value;
}

export function rate(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 1) return value;
  if (text.trim() === '')
    throw new InvalidArgumentError('it is empty: if a variable should give it, that has no value here.');
  // What was probably meant: people also write `80 %`, `80` and `0,8`.
  const meant = Number(text.replace(/\s*%$/, '').replace(',', '.'));
  const isPercent = meant >= 2 || /%$/.test(text);
  const right = isPercent ? `${meant} % is ${meant / 100}` : `write ${meant}`;
  const hint = meant >= 0 && meant <= (isPercent ? 100 : 1) ? `: ${right}` : ', such as 0.8';
  throw new InvalidArgumentError(`expected a number from 0 to 1${hint}.`);
}

export function port(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > 65_535)
    throw new InvalidArgumentError('expected a port from 0 to 65535.');
  return value;
}

/** `9320`, `127.0.0.1:9320`, `[::1]:9320` */
export function address(text: string): { host: string; port: number } {
  const [, host = '127.0.0.1', digits = ''] = /^(?:\[?(.+?)\]?:)?(\d{1,5})$/.exec(text) ?? [];
  if (digits === '') throw new InvalidArgumentError('expected an address such as 127.0.0.1:9320.');
  return { host, port: port(digits) };
}
