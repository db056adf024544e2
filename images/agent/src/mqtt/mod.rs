//! x
use crate::os::Res; use crate::proto::{Mqtt,Totals};
pub struct Client;
impl Client {
 pub fn new(_s: Mqtt)->Res<Self>{Err("mqtt: not in this build yet".into())}
 pub fn fd(&self)->Option<(i32,bool)>{None}
 pub fn on_ready(&mut self,_r:i16,_n:i64,_rec:&mut Vec<u8>){}
 pub fn on_time(&mut self,_n:i64,_rec:&mut Vec<u8>){}
 pub fn deadline(&self)->Option<i64>{None}
 pub fn connected(&self)->bool{false}
 pub fn go(&mut self,_t:i64){}
 pub fn freeze(&mut self,_n:i64,_rec:&mut Vec<u8>){}
 pub fn finish(&mut self,_n:i64,_rec:&mut Vec<u8>){}
 pub fn totals(&self)->Totals{Totals::default()}
}
