// Serves aedes on one TCP port: node aedes.mjs CONFIG MODULES. CONFIG is JSON: port, users, options of aedes.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

const [config, modules] = process.argv.slice(2)
const { port, users = {}, options = {} } = JSON.parse(readFileSync(config, 'utf8'))
const { Aedes } = await import(`${modules}/aedes/aedes.js`)
const broker = await Aedes.createBroker(options)
if (Object.keys(users).length > 0) {
  broker.authenticate = (_client, user, password, answer) => {
    const known = user !== undefined && Object.hasOwn(users, user) && users[user] === String(password)
    answer(known ? null : Object.assign(new Error('unknown user or wrong password'), { returnCode: 4 }), known)
  }
}
for (const event of ['clientError', 'connectionError']) {
  broker.on(event, (client, error) => console.log(`${event} ${client.id}: ${error.message}`))
}
createServer(broker.handle).listen(port)
process.on('SIGTERM', () => process.exit(0))
